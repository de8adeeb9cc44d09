"""platform.json: what the place that runs the wraps costs, measured by ``chiron calibrate``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PositiveFloat, model_validator

from chiron.workflow.documents import Document
from chiron.workflow.paths import Path
from chiron.workflow.profile import Milliseconds, rising

#: Constants that depend on how long the function before took.
Idle = Literal["request_ms", "stage_ms", "rpc_ms"]
#: After so long a function, in milliseconds, they are as after any longer function.
IDLE_MS = 10.0


class PathCost(Document):
    """What an object takes between wraps: `ms`, and `ms_per_mb`; ``spread`` has the quartiles."""

    ms: Milliseconds
    ms_per_mb: Milliseconds
    spread: dict[Literal["ms", "ms_per_mb"], tuple[Milliseconds, Milliseconds]] = Field(
        default_factory=dict
    )

    def at_end(self, end: int) -> PathCost:
        """The same at the lower ends of the spread, 0, or at the upper ones, 1."""
        return self.model_copy(update={name: ends[end] for name, ends in self.spread.items()})


class Platform(Document):
    """The constants of Chiron's equations (2)-(4) and of the GIL, in milliseconds.

    Attributes:
        place: where it was measured: a gateway's URL, or this machine. Empty where that is not
            known.
        cpus: cores that a sandbox can use at most.
        one_node: whether all sandboxes share those cores, as on a gateway that runs on one machine.
            Else each has its own, as in the paper.
        request_ms: what a request costs from the client to the first wrap and back, over the wrap's
            own work. The paper's equation (1) leaves it out; 0 does so too.
        stage_ms: what it costs an engine that a bucket fires within a request, and with stages each
            further one: to take in what others gave, and to begin.
        instance_ms: what a state machine computes more for each run of a task, to decide what comes
            next.
        rpc_ms: T_RPC: one invocation of a remote wrap, directly where wraps can reach each other,
            else through the gateway.
        invoke_ms: T_INV: what each further remote wrap of a stage adds.
        send_ms: how much later, for every wrap that it calls, the wrap that has the request begins
            with its own functions.
        paths: what an object from wrap to wrap takes by each path that is possible here. Where
            nothing is known, objects cost nothing but the calls that bring them, as in the paper.
        ipc_ms: T_IPC: gathering the results of one further process.
        process_gather_ms: how much longer gathering takes where a forked process gives its first
            result: what it writes to is still shared with the process that it was forked from.
        process_startup_ms, process_block_ms: T_Startup and T_Block of mechanism ``fork``: from the
            call to the first instruction of a forked process, and how long the next fork has to
            wait for this one.
        process_first_block_ms: how much longer the first of several forks blocks than those after
            it: the memory that was written since the last one has to be protected first.
        process_compute_ms: how much of T_Startup keeps a core busy. Forking, which takes T_Block of
            it, and the memory that has to be copied then compute; the paper, whose wraps have a
            core for every process, need not know.
        main_wait_ms: how much later the main process begins with its own functions where it has
            others forked, by the process that forks for it; null where it forks itself, one T_Block
            each, as in the paper.
        pool_dispatch_ms: the same for mechanism ``pool``: handing out the jobs to workers that
            wait.
        pool_core_wait_ms: how long the main process and a worker that it wakes on its own core keep
            each other from computing, at most, whether another core is free or not.
        shared_ms_per_mb: how long it takes to give another process of a wrap an output of a million
            bytes, for which the producer computes; any further process then has it for nothing.
        body_ms_per_mb: how much longer a request takes for every million bytes of its body, or of
            its answer.
        joined_ms_per_mb: how long a process takes to make an input of a million bytes of what
            several tasks gave.
        thread_startup_ms: what starting one thread costs the thread that starts it, while it holds
            the GIL.
        thread_ready_ms: how long a new thread then needs before it can run, for which its starter
            waits; null where threads wait already and are only handed their work.
        switch_interval_ms: how long a thread waits for the GIL before it asks the holder to drop
            it; CPython knows whole microseconds, at least one.
        switch_cost_ms: what one change of the GIL's holder costs.
        short_release_ms: a thread that lets the GIL go for less than this has it back before those
            that wait for it, where all cores are busy; 0 where these always come first, as in the
            paper.
        contention_overhead: by what part of itself computing takes longer while more threads want
            to compute than a wrap has cores, since some idle then all the same; 0 where cores are
            shared perfectly, as in the paper.
        cpu_probe_ms: what the CPU-speed probe, a fixed loop, took beside functions meanwhile: how
            fast the cores were that run them.
        speed_drift: what nine of ten changes of the machine's speed stayed within while it was
            calibrated, as a part of what computing took.
        prediction_error: what nine of ten predictions here of plans whose work is known stay
            within, relative to what is measured.
        idle: constant of a request, a stage or a call -> what it costs more after a function of
            `IDLE_MS`: caches and cores have gone idle meanwhile. After a shorter function it costs
            proportionally less.
        work_variation: how many times as long as its median computing takes of a request, in
            quantiles that stand for as many requests each. Where there are none, requests with one
            payload are predicted to differ by nothing but their functions.
        request_variation, idle_variation: what a request's own way takes more or less than its
            median, in milliseconds, in such quantiles: in a row, and after a function of `IDLE_MS`.
        spread: constant -> its quartiles when it is measured on several parts of the samples.
        assumed: the constants that were not measured here: what is known of Linux, CPython and the
            wrap's runtime stands in for them.
        others: the share of the cores that other programs had meanwhile; null where that is not
            known.
        warnings: why it is not to be relied on, a line each; every prediction for this platform has
            them too.
    """

    format: Literal[1]
    name: str
    place: str = ""
    cpus: Annotated[int, Field(ge=1, le=4096)]
    one_node: bool = False
    request_ms: Milliseconds = 0.0
    stage_ms: Milliseconds = 0.0
    instance_ms: Milliseconds = 0.0
    rpc_ms: Milliseconds
    invoke_ms: Milliseconds
    send_ms: Milliseconds = 0.0
    paths: dict[Path, PathCost] = Field(default_factory=dict)
    ipc_ms: Milliseconds
    process_gather_ms: Milliseconds = 0.0
    process_startup_ms: Milliseconds
    process_block_ms: Milliseconds
    process_first_block_ms: Milliseconds = 0.0
    process_compute_ms: Milliseconds = 0.0
    main_wait_ms: Milliseconds | None = None
    pool_dispatch_ms: Milliseconds
    pool_core_wait_ms: Milliseconds = 0.0
    shared_ms_per_mb: Milliseconds = 0.0
    joined_ms_per_mb: Milliseconds = 0.0
    body_ms_per_mb: Milliseconds = 0.0
    thread_startup_ms: Milliseconds
    thread_ready_ms: Milliseconds | None = None
    switch_interval_ms: Annotated[float, Field(ge=0.001, le=10_000)] = 5.0
    switch_cost_ms: Milliseconds
    short_release_ms: Milliseconds = 0.0
    contention_overhead: Annotated[float, Field(ge=0, le=10)] = 0.0
    cpu_probe_ms: Milliseconds | None = None
    speed_drift: Annotated[float, Field(ge=0, le=1)] = 0.0
    prediction_error: Annotated[float, Field(ge=0, le=1)] = 0.0
    idle: dict[Idle, Milliseconds] = Field(default_factory=dict)
    work_variation: Annotated[tuple[PositiveFloat, ...], AfterValidator(rising)] = ()
    request_variation: Annotated[tuple[float, ...], AfterValidator(rising)] = ()
    idle_variation: Annotated[tuple[float, ...], AfterValidator(rising)] = ()
    spread: dict[str, tuple[Milliseconds, Milliseconds]] = Field(default_factory=dict)
    assumed: tuple[str, ...] = ()
    others: Annotated[float, Field(ge=0)] | None = None
    warnings: tuple[str, ...] = ()

    @model_validator(mode="after")
    def _startup_includes_its_computing(self) -> Platform:
        if self.process_compute_ms > self.process_startup_ms:
            raise ValueError("process_compute_ms is a part of process_startup_ms: it is larger")
        return self

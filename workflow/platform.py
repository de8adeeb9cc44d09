"""The document platform.json: the costs of the place that runs wraps, from ``chiron calibrate``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PositiveFloat, model_validator

from chiron.workflow.documents import Document
from chiron.workflow.paths import Path
from chiron.workflow.profile import Milliseconds, rising

#: Constants that depend on the duration of the preceding function.
Idle = Literal["request_ms", "stage_ms", "rpc_ms"]
#: The duration of a function, in milliseconds, from which these constants no longer grow.
IDLE_MS = 10.0


class PathCost(Document):
    """The cost of an object sent between wraps: `ms` plus `ms_per_mb`; ``spread`` has the
    quartiles.
    """

    ms: Milliseconds
    ms_per_mb: Milliseconds
    spread: dict[Literal["ms", "ms_per_mb"], tuple[Milliseconds, Milliseconds]] = Field(
        default_factory=dict
    )

    def at_end(self, end: int) -> PathCost:
        """Return the cost at the lower (0) or upper (1) `end` of the spread."""
        return self.model_copy(update={name: ends[end] for name, ends in self.spread.items()})


class Platform(Document):
    """The constants of Chiron's equations (2)-(4) and of the GIL, in milliseconds.

    Attributes:
        place: the measured place: a gateway's URL, or this machine. Empty if unknown.
        cpus: the most cores that a sandbox can use.
        one_node: whether all sandboxes share those cores, as on a gateway on one machine. Otherwise
            each sandbox has its own cores, as in the paper.
        gil: whether threads of a process take turns to compute in Python: False for a CPython that
            is built without the lock.
        request_ms: the cost of a request from the client to the first wrap and back, beyond the
            wrap's own work. The paper's equation (1) leaves it out; 0 does so too.
        stage_ms: the engine's cost of each bucket that fires within a request, and with stages of
            each further stage: to receive the others' outputs, and to begin.
        instance_ms: the extra cost per run of a task with a state machine, which decides the next
            state.
        rpc_ms: T_RPC: one invocation of a remote wrap, directly if wraps can reach each other,
            otherwise through the gateway.
        invoke_ms: T_INV: the extra cost of each further remote wrap of a stage.
        send_ms: the delay of the requested wrap's own functions for every wrap that it calls.
        paths: the cost of an object between wraps by each available path. Without an entry, objects
            cost only the calls that carry them, as in the paper.
        ipc_ms: T_IPC: gathering the results of one further process.
        process_gather_ms: the extra time to gather the first result of a forked process, which
            still shares the memory that it writes to with its parent.
        process_startup_ms, process_block_ms: T_Startup and T_Block of mechanism ``fork``: the time
            from the call to the first instruction of a forked process, and the delay of the next
            fork.
        process_first_block_ms: the extra blocking time of the first of several forks: memory
            written since the last fork must be protected first.
        process_compute_ms: the part of T_Startup that keeps a core busy: forking, which takes
            T_Block, and copying memory. The paper needs no such constant, as its wraps have a core
            per process.
        main_wait_ms: the delay of the main process's own functions if another process forks for it;
            null if it forks itself, at one T_Block per fork, as in the paper.
        pool_dispatch_ms: the same for mechanism ``pool``: sending the jobs to waiting workers.
        pool_core_wait_ms: the longest time for which the main process and a worker that it wakes on
            its own core block each other, even if another core is free.
        interpreters_dispatch_ms, interpreters_core_wait_ms: the same for mechanism
            ``interpreters``; null if the wraps' Python cannot have it.
        shared_ms_per_mb: the producer's computing time to share an output of a million bytes with
            another process of its wrap; further processes get it for free.
        body_ms_per_mb: the extra time of a request per million bytes of its body, or of its answer.
        joined_ms_per_mb: the time of a process to build an input of a million bytes from the
            outputs of several tasks.
        thread_startup_ms: the cost of starting one thread, for the starting thread, which holds the
            GIL.
        thread_ready_ms: the time until a new thread can run, for which its starter waits; null if
            waiting threads are reused.
        switch_interval_ms: the time that a thread waits for the GIL before it asks the holder to
            drop it; CPython uses whole microseconds, at least one.
        switch_cost_ms: the cost of one change of the GIL's holder.
        short_release_ms: a thread that releases the GIL for less than this gets it back before the
            waiting threads, if all cores are busy or they are tasks that have not begun; 0 if
            waiting threads always go first, as in the paper.
        contention_overhead: the relative slowdown of computing while more threads want to compute
            than a wrap has cores, as some cores still idle; 0 if cores are shared perfectly, as in
            the paper.
        cpu_probe_ms: the time of the CPU-speed probe, a fixed loop, beside the measured functions:
            a measure of the speed of their cores.
        speed_drift: the bound on nine of ten changes of the machine's speed during calibration,
            relative to the computing time.
        prediction_error: the bound on nine of ten prediction errors here, for plans of known work,
            relative to the measurement.
        idle: the extra cost of a request, a stage or a call after a function of `IDLE_MS`, by
            constant: caches and cores have gone idle. After a shorter function it is proportionally
            less.
        work_variation: a request's computing time relative to its median, as quantiles that each
            represent equally many requests. If empty, requests with one payload are predicted to
            differ only by their functions.
        request_variation, idle_variation: the deviation of a request's own overhead from its
            median, in milliseconds, as such quantiles: for consecutive requests, and after a
            function of `IDLE_MS`.
        spread: the quartiles of each constant over measurements on several parts of the samples.
        assumed: the constants not measured here, taken from what is known of Linux, CPython and the
            wrap's runtime.
        others: the share of the cores that other programs used meanwhile; null if unknown.
        warnings: why the platform is unreliable, a line each; every prediction for it repeats them.
    """

    format: Literal[1]
    name: str
    place: str = ""
    cpus: Annotated[int, Field(ge=1, le=4096)]
    one_node: bool = False
    gil: bool = True
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
    interpreters_dispatch_ms: Milliseconds | None = None
    interpreters_core_wait_ms: Milliseconds = 0.0
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

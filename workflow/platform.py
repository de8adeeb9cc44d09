"""platform.json: what the place that runs the wraps costs, measured by ``chiron calibrate``."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from workflow.documents import Document
from workflow.profile import Milliseconds


class Platform(Document):
    """The constants of Chiron's equations (2)-(4) and of the GIL, in milliseconds.

    Attributes
    ----------
    cpus
        Cores that a sandbox can use at most.
    request_ms
        What a request costs from the client to the first wrap and back, over the wrap's own
        work. The paper's equation (1) leaves it out; 0 does so too.
    rpc_ms
        T_RPC: one invocation of a remote wrap through the gateway.
    invoke_ms
        T_INV: what each further remote wrap of a stage adds.
    ipc_ms
        T_IPC: gathering the results of one further process.
    process_startup_ms, process_block_ms
        T_Startup and T_Block of mechanism ``fork``: from the call to the first instruction of
        a forked process, and how long the next fork has to wait for this one.
    process_first_block_ms
        How much longer the first fork of a stage blocks than those after it: the memory that was
        written since the last one has to be protected first.
    pool_dispatch_ms
        The same for mechanism ``pool``: handing a job to a waiting worker.
    thread_startup_ms
        What starting one thread costs the thread that starts it, while it holds the GIL.
    thread_ready_ms
        How long a new thread then needs before it can run, for which its starter waits; null
        where threads wait already and are only handed their work.
    switch_interval_ms
        How long a thread waits for the GIL before it asks the holder to drop it; CPython knows
        whole microseconds, at least one.
    switch_cost_ms
        What one change of the GIL's holder costs.
    spread
        Constant -> its quartiles when it is measured on several parts of the samples.
    """

    format: Literal[1]
    name: str
    cpus: Annotated[int, Field(ge=1, le=4096)]
    request_ms: Milliseconds = 0.0
    rpc_ms: Milliseconds
    invoke_ms: Milliseconds
    ipc_ms: Milliseconds
    process_startup_ms: Milliseconds
    process_block_ms: Milliseconds
    process_first_block_ms: Milliseconds = 0.0
    pool_dispatch_ms: Milliseconds
    thread_startup_ms: Milliseconds
    thread_ready_ms: Milliseconds | None = None
    switch_interval_ms: Annotated[float, Field(ge=0.001, le=10_000)] = 5.0
    switch_cost_ms: Milliseconds
    spread: dict[str, tuple[Milliseconds, Milliseconds]] = Field(default_factory=dict)

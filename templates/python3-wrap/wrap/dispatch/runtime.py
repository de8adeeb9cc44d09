"""The parts of a running wrap, as its executions use them."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from wrap.cluster.offload import Offload
from wrap.cluster.peers import PeerProtocol
from wrap.config.sandbox import MemoryKills
from wrap.core.wrap_spec import Wrap
from wrap.dispatch.lost_threads import LostThreads
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.functions.function_runner import FunctionRunner
from wrap.http.traffic_switch import Route
from wrap.net.object_store import Store
from wrap.net.transport import Transport
from wrap.observe.metrics import Metrics
from wrap.pipes.broker import Broker
from wrap.values.budget import MemoryBudget
from wrap.workers.mechanisms.mechanism import Mechanism

if TYPE_CHECKING:
    from wrap.observe.spans import Exporter


@dataclass(frozen=True)
class Runtime:
    """A wrap and the resources of its executions."""

    wrap: Wrap
    functions: dict[str, FunctionRunner]
    threads: ThreadPool
    loop: Loop
    mechanism: Mechanism
    transport: Transport
    route: Route
    #: The key of requests that are traced; empty if none is.
    trace_key: str = ""
    #: Bytes that a request may have; None for any number.
    most_request: int | None = None
    #: Bytes that an object may have that a state machine writes.
    longest: float = inf
    #: None if wraps do not take part in each other's executions.
    peer_protocol: PeerProtocol | None = None
    #: None if no other replica of the wrap may run executions that wait here.
    offload: Offload | None = None
    budget: MemoryBudget | None = None
    #: Passes objects between wraps; None if messages do.
    store: Store | None = None
    #: None if no stream is read while it is written.
    broker: Broker | None = None
    #: Exports executions; None if no OpenTelemetry collector is named.
    spans: Exporter | None = None
    memory_kills: MemoryKills = field(default_factory=MemoryKills)
    lost_threads: LostThreads = field(default_factory=LostThreads)
    metrics: Metrics = field(default_factory=Metrics)
    #: Bytes that the result of a task, or the output of a state, may have.
    most_state: float = inf

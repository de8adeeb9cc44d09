"""What a running wrap is made of, and the seams between its parts."""

from __future__ import annotations

from dataclasses import dataclass, field
from math import inf
from typing import TYPE_CHECKING

from wrap.cluster.offload import Offload
from wrap.cluster.peers import PeerProtocol
from wrap.config.sandbox import MemoryKills
from wrap.config.wrap_spec import Wrap
from wrap.core.lost_threads import LostThreads
from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.functions.function_runner import FunctionRunner
from wrap.http.traffic_switch import Route
from wrap.net.object_store import Store
from wrap.net.transport import Transport
from wrap.observe.metrics import Metrics
from wrap.pipes.broker import Broker
from wrap.values.budget import MemoryBudget
from wrap.workers.mechanisms import Mechanism

if TYPE_CHECKING:
    from wrap.observe.spans import Exporter


@dataclass(frozen=True)
class Runtime:
    """A wrap and what it runs on; without `trace_key` no request is traced.

    ``most_request`` is how many bytes a request may have; None where all that came may be run.
    ``longest`` is how many bytes an object may have that a state machine writes; ``most_state`` is
    how many bytes the result of a task, or the output of a state, may have.
    ``peer_protocol`` is None where wraps do not take part in each other's executions, ``offload``
    where no other replica of the wrap may run what waits here.
    ``broker`` is None where no stream is read while it is written.
    ``lost_threads`` says whether more threads may begin.
    ``spans`` is what executions are told to, None where no OpenTelemetry collector is named.
    ``store`` is by what objects get to and from other wraps, None where that is by messages.
    """

    wrap: Wrap
    functions: dict[str, FunctionRunner]
    threads: ThreadPool
    loop: Loop
    mechanism: Mechanism
    transport: Transport
    route: Route
    trace_key: str = ""
    most_request: int | None = None
    longest: float = inf
    peer_protocol: PeerProtocol | None = None
    offload: Offload | None = None
    budget: MemoryBudget | None = None
    store: Store | None = None
    broker: Broker | None = None
    spans: Exporter | None = None
    memory_kills: MemoryKills = field(default_factory=MemoryKills)
    lost_threads: LostThreads = field(default_factory=LostThreads)
    metrics: Metrics = field(default_factory=Metrics)
    most_state: float = inf

"""The probes of a wrap, which a busy wrap answers too: health, name, address, metrics."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias
from uuid import uuid4

from wrap.cluster.participant import Participant
from wrap.dispatch.runtime import Runtime
from wrap.http.request_fields import Environ
from wrap.http.response import Response
from wrap.http.server.connection import LOAD
from wrap.net.gateway_client import ADDRESS
from wrap.net.peer_server import PeerServer
from wrap.observe.metrics import PROMETHEUS, process_metrics, replica_metrics
from wrap.workers.pulse import Pulse

if TYPE_CHECKING:
    from wrap.dispatch.sessions import Events

#: The paths.
PROBES = ("/_/health", "/_/wrap", ADDRESS, "/metrics")
#: Answers a request of a method and a path; returns None if the answer comes later.
View: TypeAlias = Callable[[Environ], Response | None]


def probes(
    runtime: Runtime,
    pulse: Pulse,
    listener: PeerServer | None,
    events: Events | None,
    participant: Participant | None,
) -> dict[tuple[str, str], View]:
    """Return the views of probes by method and path; the parameters are the application's."""
    replica = uuid4().hex

    def health(_: Environ) -> Response:
        still = pulse.is_blocked
        return Response("the event loop stands still\n" if still else "OK", 503 if still else 200)

    def name(_: Environ) -> Response:
        return Response(runtime.route.target or runtime.wrap.name)

    def direct(_: Environ) -> Response:
        return Response(listener.address) if listener is not None else Response(status=404)

    def metrics(environ: Environ) -> Response:
        taken, queued = environ[LOAD]()
        taken += participant.in_hand if participant is not None else 0
        buckets = None if events is None else events.buckets
        held = buckets.size if buckets else runtime.budget.held if runtime.budget else 0
        firings = buckets.load if buckets else None
        lines = replica_metrics(runtime, replica, taken, queued, held, firings)
        lines += runtime.metrics.lines() + process_metrics()
        lines += listener.refusals.count.lines() if listener is not None else []
        lines += events.metrics() if events is not None else []
        lines += runtime.spans.dropped.lines() if runtime.spans is not None else []
        return Response("\n".join((*lines, "")), content_type=PROMETHEUS)

    views = dict(zip(PROBES, (health, name, direct, metrics), strict=True))
    return {("GET", path): view for path, view in views.items()}

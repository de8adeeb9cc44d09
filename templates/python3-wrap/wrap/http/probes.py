"""What a wrap tells of itself, also a busy one: health, name, address, metrics."""

from __future__ import annotations

from uuid import uuid4

from flask import Flask, Response, request

from wrap.cluster.participant import Participant
from wrap.dispatch.runtime import Runtime
from wrap.dispatch.sessions import Events
from wrap.http.server import LOAD
from wrap.net.gateway_client import ADDRESS
from wrap.net.peer_server import PeerServer
from wrap.observe.metrics import PROMETHEUS, page, process_metrics, replica_metrics
from wrap.workers.pulse import Pulse

#: The paths.
PROBES = ("/_/health", "/_/wrap", ADDRESS, "/metrics")


def add_probes(
    app: Flask,
    runtime: Runtime,
    pulse: Pulse,
    listener: PeerServer | None,
    events: Events | None,
    participant: Participant | None,
) -> None:
    """Add the endpoints to the application, whose parameters these are."""
    replica = uuid4().hex

    @app.get(PROBES[0])
    def health() -> Response:
        still = pulse.stands_still
        return Response("the event loop stands still\n" if still else "OK", 503 if still else 200)

    @app.get(PROBES[1])
    def name() -> str:
        return runtime.route.target or runtime.wrap.name

    @app.get(ADDRESS)
    def direct() -> Response:
        return Response(listener.address) if listener is not None else Response(status=404)

    @app.get(PROBES[3])
    def metrics() -> Response:
        taken, queued = request.environ[LOAD]()
        taken += participant.in_hand if participant is not None else 0
        held = events.size if events is not None else runtime.budget.held if runtime.budget else 0
        firings = events.load if events is not None else None
        lines = replica_metrics(runtime, replica, taken, queued, held, firings)
        lines += runtime.metrics.lines() + process_metrics()
        lines += listener.refusals.count.lines() if listener is not None else []
        lines += events.metrics() if events is not None else []
        lines += runtime.spans.dropped.lines() if runtime.spans is not None else []
        return Response(page(lines), content_type=PROMETHEUS)

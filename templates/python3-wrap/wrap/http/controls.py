"""What who has the key of a build may have its wrap do: hand requests on, show dead letters."""

from __future__ import annotations

import json
import time

from flask import Flask, Response, request

from wrap.cluster.participant import told
from wrap.core.errors import TaskError
from wrap.dispatch.runtime import Runtime
from wrap.dispatch.sessions import Events
from wrap.http.handing_on import OF_BUILD
from wrap.http.request_fields import TRACE, watch_of
from wrap.net.gateway_client import ANSWERED_HEADER
from wrap.values.value import JSON

#: Where dead letters are.
_LETTERS = "/_/dead-letters"


def add_controls(app: Flask, runtime: Runtime, events: Events | None) -> None:
    """Add the endpoints to the application, whose parameters these are."""

    @app.route("/", methods=["OPTIONS"])
    def build() -> Response:
        """Who has deployed a build asks for that one: the one before may answer meanwhile."""
        if TRACE not in request.environ:
            return app.make_default_options_response()
        own = {ANSWERED_HEADER: runtime.wrap.name}
        if not watch_of(request.environ, runtime.trace_key).traced:
            return Response("another build of it answers\n", 503, own)
        return Response(status=OF_BUILD, headers=own)

    @app.post("/_/route")
    def route() -> Response:
        """Have another entry wrap answer from now on; the empty name stands for this one."""
        if runtime.wrap.entry is None or not watch_of(request.environ, runtime.trace_key).traced:
            return Response("only an entry takes this, with its key\n", 403)
        try:
            runtime.route.change(request.get_data(as_text=True))
        except ValueError as error:
            return Response(f"{error}\n", 400)
        return Response(status=204)

    @app.post(_LETTERS)
    def letters() -> Response:
        """Show, run again or forget dead letters; the body has the verb and names, by lines."""
        if events is None or not events.is_durable:
            return Response("its buckets are not durable: there are no dead letters\n", 404)
        if not watch_of(request.environ, runtime.trace_key).traced:
            return Response("only who has the key of this build may look at dead letters\n", 403)
        verb, *names = request.get_data(as_text=True).splitlines() or [""]
        if verb not in ("show", "retry", "discard"):
            return Response(f"{verb!r} is no verb: show, retry or discard\n", 400)
        try:
            found = events.letters(verb, names, time.monotonic() + runtime.wrap.timeout_s)
        except TaskError as error:
            said = json.dumps(told(runtime, error, time.monotonic()))
            return Response(said, error.status, content_type=JSON)
        return Response(json.dumps(found), content_type=JSON)

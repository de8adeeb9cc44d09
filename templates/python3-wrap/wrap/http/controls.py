"""Controls for the holder of a build's key: confirm the build, switch traffic, dead letters."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from wrap.cluster.participant import error_fields
from wrap.core.errors import TaskError
from wrap.dispatch.runtime import Runtime
from wrap.http.handing_on import OF_BUILD
from wrap.http.probes import View
from wrap.http.request_fields import TRACE, Environ, body_of, watch_of
from wrap.http.response import Response
from wrap.net.gateway_client import ANSWERED_HEADER
from wrap.values.value import JSON

if TYPE_CHECKING:
    from wrap.dispatch.sessions import Events

#: The path of dead letters.
_LETTERS = "/_/dead-letters"


def controls(
    runtime: Runtime, events: Events | None, methods: list[str]
) -> dict[tuple[str, str], View]:
    """Return the views of the controls by method and path; the parameters are the application's.

    `methods` are the methods of requests.
    """
    allowed = ", ".join([*methods, *(["HEAD"] if "GET" in methods else []), "OPTIONS"])

    def build(environ: Environ) -> Response:
        """Confirm the build for which a client has the key: an older build may still answer."""
        if TRACE not in environ:
            return Response(headers=[("Allow", allowed)])
        own = [(ANSWERED_HEADER, runtime.wrap.name)]
        if not watch_of(environ, runtime.trace_key).traced:
            return Response("another build of it answers\n", 503, own)
        return Response(status=OF_BUILD, headers=own)

    def route(environ: Environ) -> Response:
        """Make another entry wrap answer from now on; the empty name stands for this one."""
        if runtime.wrap.entry is None or not watch_of(environ, runtime.trace_key).traced:
            return Response("only an entry takes this, with its key\n", 403)
        try:
            runtime.route.change(str(body_of(environ), "utf-8", "replace"))
        except ValueError as error:
            return Response(f"{error}\n", 400)
        return Response(status=204)

    def letters(environ: Environ) -> Response:
        """Show, retry or discard dead letters; the lines of the body are the verb and names."""
        if events is None or not events.is_durable:
            return Response("its buckets are not durable: there are no dead letters\n", 404)
        if not watch_of(environ, runtime.trace_key).traced:
            return Response("only who has the key of this build may look at dead letters\n", 403)
        verb, *names = str(body_of(environ), "utf-8", "replace").splitlines() or [""]
        if verb not in ("show", "retry", "discard"):
            return Response(f"{verb!r} is no verb: show, retry or discard\n", 400)
        try:
            found = events.letters(verb, names, time.monotonic() + runtime.wrap.timeout_s)
        except TaskError as error:
            said = json.dumps(error_fields(runtime, error, time.monotonic()))
            return Response(said, error.status, content_type=JSON)
        return Response(json.dumps(found), content_type=JSON)

    return {("OPTIONS", "/"): build, ("POST", "/_/route"): route, ("POST", _LETTERS): letters}

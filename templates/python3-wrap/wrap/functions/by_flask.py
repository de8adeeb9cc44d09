"""Flask's part of a call: request contexts, and unusual answers.

Importing Flask takes a third of a wrap's start time and 6 MiB of each process. So this module is
imported only for functions that import Flask and for answers that `wrap.functions.styles` cannot
read itself.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from flask import Flask, has_request_context
from flask.ctx import RequestContext
from flask.globals import request_ctx
from werkzeug.wrappers import Response

from wrap.functions.answers import ENDPOINTS, METHODS
from wrap.functions.public import PACKAGE, directory
from wrap.functions.styles import environ_of, refuse_hop_by_hop
from wrap.values.value import Object


class _Context(RequestContext):
    """A request context whose routing error has no traceback and no cause.

    Both are reference cycles whose frames would keep the inputs until garbage is collected.
    """

    def match_request(self) -> None:
        super().match_request()
        error = self.request.routing_exception
        if error is not None:
            error.__traceback__ = error.__context__ = None


class Application(Flask):
    """The application of a function, which the function may configure.

    Its root path is the folder of the calling function; ``send_file`` reads it.
    """

    def request_context(self, environ: dict[str, Any]) -> RequestContext:
        return _Context(self, environ)

    @property
    def root_path(self) -> str:
        return directory() or self._root_path

    @root_path.setter
    def root_path(self, path: str) -> None:
        self._root_path = path


def application(folder: str, style: str = "flask") -> Application:
    """Return the application of a function in `folder`, with the routes of its template."""
    whole = os.path.abspath(folder)  # noqa: PTH100 (links stay)
    found = Application(PACKAGE, root_path=whole, instance_path=f"{whole}/instance")
    name, methods = ENDPOINTS[style], METHODS[style]
    found.add_url_rule("/", name, defaults={"path": ""}, methods=methods)
    found.add_url_rule("/<path:path>", name, methods=methods)
    found._got_first_request = True  # from then on nobody may set the application up
    return found


#: Builds the answers of functions that do not import Flask.
_FLASK = application(".")
#: The request body while Flask builds an answer for a handler without a request.
_NONE = Object("")


def flask_request(
    application: Flask, given: Object, trace: Mapping[str, str]
) -> AbstractContextManager[Any]:
    context = application.request_context(_with_body(environ_of(given, trace), given))
    context.request.get_data()  # as the template does, so the stream is at its end
    return context


def _with_body(environ: dict[str, Any], given: Object) -> dict[str, Any]:
    """Add the WSGI entries that are no texts."""
    environ["wsgi.version"] = (1, 0)
    environ["wsgi.input"] = io.BytesIO(given.data())
    environ["wsgi.input_terminated"] = True
    environ["wsgi.errors"] = sys.stderr
    environ["wsgi.multithread"], environ["wsgi.multiprocess"] = True, False
    environ["wsgi.run_once"] = False
    return environ


def made(value: Any) -> Response:
    """Return Flask's response for a handler's value, in the current request if there is one."""
    if has_request_context():
        response = request_ctx.app.finalize_request(value)
        if response.autocorrect_location_header:
            response.headers = response.get_wsgi_headers(request_ctx.request.environ)
    else:
        with _FLASK.request_context(_with_body(environ_of(_NONE, {}), _NONE)):
            response = _FLASK.finalize_request(value)
    refuse_hop_by_hop(response.headers.keys())
    return response

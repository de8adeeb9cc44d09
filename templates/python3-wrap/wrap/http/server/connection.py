"""A connection: it reads requests, and has them served in their order."""

from __future__ import annotations

import contextlib
import socket
import struct
import time
import traceback
from collections.abc import Callable, Iterable
from typing import Any

from waitress.adjustments import Adjustments
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.task import WSGITask
from waitress.utilities import BadRequest

from .body import LARGE, Uncopied
from .program import OneProcess
from .request import FullError, Parser

#: Where a WSGI environment has the time, of the monotonic clock, at which the request was whole.
#: It may have waited for a thread since then.
ARRIVED = "chiron.arrived"
#: Where it has what an application calls that answers later, by any thread: no thread waits for it.
#: It gets a function that takes the answer, a WSGI application, and whether the server's own thread
#: is to send it, as the calling one has no time; what it returns itself is dropped.
LATER = "chiron.later"
#: Where it has what says how many requests are served, and how many wait.
LOAD = "chiron.load"
REQUEST_OF = "chiron.request"
#: The HTTP status of a request whose client has not waited for its answer (nginx's), and of one
#: that the application has not answered.
_CLIENT_GONE, _NO_ANSWER = "499", "500"
#: Requests that may wait on one connection.
_PIPELINED = 8
_NO_LINGER = struct.pack("ii", 1, 0)


class CutError(ClientDisconnected):  # type: ignore[misc]
    """The rest of an answer cannot be had: raised by its body, it has the connection closed."""


class LaterError(BaseException):
    """The request is not answered yet."""


class _Task(WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        """WSGI's, when the request arrived, the load, and what an answer is given to later."""
        environment: dict[str, Any] = super().get_environment()
        environment["SERVER_SOFTWARE"] = "waitress"  # as alone; no answer says it
        environment[ARRIVED] = self.request.arrived
        environment[REQUEST_OF] = self.request
        environment[LATER] = self.channel.answer_later
        environment[LOAD] = self.channel.server.task_dispatcher.count
        return environment

    def build_response_header(self) -> bytes:
        """As ever, but that a server that is about to end keeps no connection."""
        self.request.status = self.status[:3]
        if not self.channel.server.accepting:
            self.set_close_on_finish()
        header = bytes(super().build_response_header())
        if self.request.command == "HEAD":
            self.chunked_response = False  # there is no body that would have to be ended
        return header


class Channel(HTTPChannel):  # type: ignore[misc]
    """A connection."""

    task_class = _Task
    request: Parser | None
    requests: list[Parser]
    arrived = 0.0
    #: Bytes, as the server has counted them.
    held = 0

    def parser_class(self, adj: Adjustments) -> Parser:
        """What reads the next request."""
        parser = Parser(adj)
        if len(self.requests) < _PIPELINED:
            return parser
        return parser.refuse_all(BadRequest(f"more than {_PIPELINED} requests before an answer"))

    @property
    def is_owed(self) -> bool:
        """Whether the client has not had its answer yet."""
        return bool(self.requests or self.leaving)

    @property
    def coming(self) -> int:
        """Bytes that it holds of a request that is not whole."""
        last = self.request
        return last.size if last else 0

    @property
    def leaving(self) -> int:
        """Bytes of answers that the client has not taken."""
        return int(self.total_outbufs_len)

    def size(self) -> int:
        """Bytes that it holds."""
        requests = sum(request.size for request in tuple(self.requests))
        return requests + self.coming + self.leaving

    def give_way(self) -> None:
        """Hold less: refuse the request that comes, or let the connection go."""
        coming = self.request
        if coming is None or not coming.in_body:
            self.abort()
        else:
            most = self.server.bounds.size
            coming.refuse(FullError(f"all requests together may have {most} bytes: try again"))
            self.server.count(self)

    def abort(self) -> None:
        """Let the connection go at once, with what the kernel still has to send over it."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.handle_close()

    def received(self, data: bytes) -> bool:
        """Part of a request has come, perhaps its last one."""
        self.arrived = time.monotonic()
        took = bool(super().received(data))
        self.server.count(self)
        self.server.relieve_now()
        return took

    def serve_first(self) -> None:
        """Serve the first request in this thread; it stays active if it is answered later."""
        try:
            self.service()
        except LaterError:
            return
        except BaseException:  # whatever a handler has done to the process: the next is served
            traceback.print_exc()
        self.server.task_dispatcher.end()

    def service(self) -> None:
        """Serve a request in this thread. Raises `LaterError` where it will be answered later."""
        request = self.requests[0]
        with OneProcess() as self._process:
            super().service()
        self.server.count(self)
        if not request.is_probe:
            took_s = time.monotonic() - request.arrived
            self.server.answered(request.command, self._status_of(request), took_s)

    def _status_of(self, request: Parser) -> str:
        if request.error:
            return str(request.error.code)
        return request.status or (_NO_ANSWER if self.connected else _CLIENT_GONE)

    def answer_later(self) -> Callable[..., None]:
        """Keep the request until what is returned here is called, as `LATER` says."""
        request = self.requests[0]
        request.later = True

        def answer(application: Callable[..., Iterable[bytes]], *, elsewhere: bool = False) -> None:
            request.answer = application
            if elsewhere:
                self.server.do_soon(self.serve_first)
            else:
                self.serve_first()

        return answer

    def write_soon(self, data: bytes | memoryview) -> int:
        """Send `data` once the connection takes it."""
        self._process.check()  # a body may fork while it is made
        if not self.total_outbufs_len:
            self.last_activity = time.time()  # it was the handler that was silent until now
        large = isinstance(data, bytes | memoryview) and len(data) >= LARGE
        written = int(super().write_soon(Uncopied(data) if large else data))
        if self.total_outbufs_len:
            self.server.count(self)
            self.server.wait_for_relief()
        return written

    def handle_write(self) -> None:
        """Send more of an answer."""
        super().handle_write()
        self.server.count(self)

    def handle_close(self) -> None:
        """The connection is gone, and with it all that had not begun."""
        super().handle_close()
        self.request = None
        if self.server.forget(self):
            self.requests = []
        else:
            del self.requests[1:]
        self.server.count(self)

"""A connection: it reads requests, and has them served in order."""

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

#: The key, in a WSGI environment, of the monotonic time at which the request was complete. It may
#: have waited for a thread since then.
ARRIVED = "chiron.arrived"
#: The key of a function that an application calls to answer later, so that no thread waits. The
#: function returns a callback for any thread, which takes the answer, a WSGI application. With
#: `elsewhere`, the server's own thread sends it. The application's own return value is dropped.
LATER = "chiron.later"
#: The key of a function that returns how many requests are served, and how many wait.
LOAD = "chiron.load"
REQUEST_OF = "chiron.request"
#: The HTTP status for the log if the client closed before the answer (nginx's), and if the
#: application did not answer.
_CLIENT_GONE, _NO_ANSWER = "499", "500"
#: The most requests that may wait on one connection.
_PIPELINED = 8
_NO_LINGER = struct.pack("ii", 1, 0)


class CutError(ClientDisconnected):  # type: ignore[misc]
    """Raised by a body whose rest is lost; the server then closes the connection."""


class LaterError(BaseException):
    """The request is not answered yet."""


class _Task(WSGITask):  # type: ignore[misc]
    def get_environment(self) -> dict[str, Any]:
        """Return WSGI's environment, with the keys of this module.

        An answer that came later, to a request that was read before, needs only a few.
        """
        request = self.request
        if request.answer is not None:
            peer = self.channel.addr[0]
            return {"REQUEST_METHOD": request.command, "REMOTE_ADDR": peer, REQUEST_OF: request}
        environment: dict[str, Any] = super().get_environment()
        environment["SERVER_SOFTWARE"] = "waitress"  # as with waitress alone; no answer has it
        environment[ARRIVED] = request.arrived
        environment[REQUEST_OF] = request
        environment[LATER] = self.channel.answer_later
        environment[LOAD] = self.channel.server.task_dispatcher.count
        return environment

    def write(self, data: bytes | memoryview) -> None:
        """Send a piece of the body: the first together with the head, which wakes a client once."""
        channel = self.channel
        channel.keeps_head = not self.wrote_header and 0 < len(data) < LARGE
        try:
            super().write(data)
        finally:
            channel.keeps_head = False
        channel.send_head()

    def build_response_header(self) -> bytes:
        """Build the header; a server that is about to end closes its connections."""
        self.request.status = self.status[:3]
        if not self.channel.server.accepting:
            self.set_close_on_finish()
        header = bytes(super().build_response_header())
        if self.request.command == "HEAD":
            self.chunked_response = False  # there is no body to end
        return header


class Channel(HTTPChannel):  # type: ignore[misc]
    task_class = _Task
    request: Parser | None
    requests: list[Parser]
    arrived = 0.0
    #: The bytes that it holds, as last counted by the server.
    held = 0
    #: Whether what is written next is a head that waits for the body, and a head that waits.
    keeps_head = False
    _head = b""
    #: Whether the loop has found that it reads this connection, at its last turn.
    is_read = False

    def parser_class(self, adj: Adjustments) -> Parser:
        parser = Parser(adj)
        if len(self.requests) < _PIPELINED:
            return parser
        return parser.refuse_all(BadRequest(f"more than {_PIPELINED} requests before an answer"))

    @property
    def is_owed(self) -> bool:
        return bool(self.requests or self.leaving)

    @property
    def coming(self) -> int:
        last = self.request
        return last.size if last else 0

    @property
    def leaving(self) -> int:
        return int(self.total_outbufs_len)

    def size(self) -> int:
        requests = sum(request.size for request in tuple(self.requests))
        return requests + self.coming + self.leaving

    def give_way(self) -> None:
        """Free memory: refuse the request being read, or close the connection."""
        coming = self.request
        if coming is None or not coming.in_body:
            self.abort()
        else:
            most = self.server.bounds.size
            coming.refuse(FullError(f"all requests together may have {most} bytes: try again"))
            self.server.count(self)

    def abort(self) -> None:
        """Close the connection at once, and drop the bytes that the kernel has not sent."""
        with contextlib.suppress(OSError):
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self.handle_close()

    def received(self, data: bytes) -> bool:
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
        except BaseException:  # whatever a handler has raised, the next request is served
            traceback.print_exc()
        self.server.task_dispatcher.end()

    def service(self) -> None:
        """Serve a request in this thread. Raises LaterError if it will be answered later."""
        request = self.requests[0]
        self.server.own.channel = self
        try:
            with OneProcess() as self._process:
                super().service()
        finally:
            self.server.own.channel = None
        self.server.count(self)
        if not request.is_probe:
            took_s = time.monotonic() - request.arrived
            self.server.hooks.answered(request.command, self._status_of(request), took_s)

    def _status_of(self, request: Parser) -> str:
        if request.error:
            return str(request.error.code)
        return request.status or (_NO_ANSWER if self.connected else _CLIENT_GONE)

    def answer_later(self) -> Callable[..., None]:
        """Keep the request until the returned function is called; see `LATER`."""
        request = self.requests[0]
        request.later = True

        def answer(application: Callable[..., Iterable[bytes]], *, elsewhere: bool = False) -> None:
            request.answer = application
            if elsewhere:
                self.server.do_soon(self.serve_first)
            else:
                self.serve_first()

        return answer

    def readable(self) -> bool:
        """Return whether to read more; a thread that frees the buffers meanwhile sees False."""
        self.is_read = False
        self.is_read = found = bool(super().readable())
        return found

    @property
    def needs_no_turn(self) -> bool:
        """Whether it waits for the next request only, and the loop reads it without a turn."""
        busy = self.requests or self.total_outbufs_len
        return self.is_read and not (busy or self.will_close or self.close_when_flushed)

    def send_head(self) -> None:
        """Send a head that still waits, as there is no body."""
        if self._head:
            self.write_soon(b"")

    def write_soon(self, data: bytes | memoryview) -> int:
        self._process.check()  # a body may fork while it is made
        if self.keeps_head:
            self.keeps_head, self._head = False, bytes(data)
            return len(data)
        if self._head:
            data, self._head = b"".join((self._head, data)), b""
        if not self.total_outbufs_len:
            self.last_activity = time.time()  # until now the handler was silent, not the client
        large = isinstance(data, bytes | memoryview) and len(data) >= LARGE
        written = int(super().write_soon(Uncopied(data) if large else data))
        if self.total_outbufs_len:
            self.server.count(self)
            self.server.wait_for_relief()
        return written

    def handle_write(self) -> None:
        super().handle_write()
        self.server.count(self)

    def handle_close(self) -> None:
        """Remove the closed connection, and all its requests that have not begun."""
        super().handle_close()
        self.request = None
        if self.server.forget(self):
            self.requests = []
        else:
            del self.requests[1:]
        self.server.count(self)

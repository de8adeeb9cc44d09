"""Bounds for client connections: waitress, with authentication first and limits on everything.

waitress itself reads a body before it checks credentials. At its limit it accepts no connection,
even if all are silent. It buffers bodies and answers for as long as they trickle. Here a connection
serves one request: it waits for its head, transfers (a body in, an answer out), or is being worked
on. Each state has a maximum of connections, the first two have a timeout. Beyond the maximum, the
connection that waited longest is closed, so new clients are served.
"""

from __future__ import annotations

import logging
import socket
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, Literal

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.channel import ClientDisconnected, HTTPChannel
from waitress.parser import HTTPRequestParser
from waitress.server import TcpWSGIServer
from waitress.task import ErrorTask

from chiron.openfaas.credentials import Credentials
from chiron.services.access import challenges, refusal
from chiron.services.problems import RETRY_AFTER_S, Problem, render_problem
from chiron.services.strict_request import FORM_LIMIT
from chiron.workflow.errors import ChironError

#: The most requests that are answered at the same time.
_THREADS = 8
#: The most connections in each state.
_CONNECTIONS = 128
#: The timeout of a head, and of the client's close after its answer, in seconds.
_HEAD_S = 5.0
#: The timeout of a body or an answer, and the timeout when memory is short, in seconds.
_TRANSFER_S, _CROWDED_S = 120.0, 10.0
#: The longest head in bytes.
_HEAD_LIMIT = 16 * 1024
#: The most bytes buffered of all bodies, and of bodies and answers, in memory and in files.
_BODIES, _HELD = 4 * FORM_LIMIT, 8 * FORM_LIMIT
#: The most connections accepted in one turn of the event loop.
_AT_ONCE = 64
_log = logging.getLogger("services")


class Server(TcpWSGIServer):  # type: ignore[misc]
    """Serves `application` on `listener` within these bounds, only to clients with the secret."""

    def __init__(
        self, application: Callable[..., Any], listener: socket.socket, secret: Credentials | None
    ) -> None:
        self.secret = secret
        self._held = 0
        self._lock = threading.Lock()
        never = sys.maxsize
        adjustments = Adjustments(
            sockets=[listener],
            threads=_THREADS,
            ident="chiron",
            max_request_header_size=_HEAD_LIMIT,
            max_request_body_size=FORM_LIMIT + 1,  # the first size that waitress refuses
            outbuf_high_watermark=never,  # no thread waits for a client to read
            connection_limit=never,
            channel_timeout=never,
        )
        place = (listener.family, listener.type, listener.proto, listener.getsockname())
        super().__init__(
            application, _sock=listener, adj=adjustments, sockinfo=place, bind_socket=False
        )
        self.channel_class = _Connection

    def run(self, ended: threading.Event) -> None:
        """Serve until SystemExit, until `ended` is set, or until all connections are closed."""
        try:
            while self._map and not ended.is_set():
                wasyncore.loop(timeout=1, use_poll=True, map=self._map, count=1)
                self._close_overdue()  # not in the loop, which may have events for these
        except (SystemExit, KeyboardInterrupt):
            pass
        self.task_dispatcher.shutdown()

    def handle_accept(self) -> None:
        """Accept the waiting connections: one in each turn of the loop would be too slow."""
        for _ in range(_AT_ONCE):
            before = len(self.active_channels)
            super().handle_accept()
            if len(self.active_channels) == before:
                return

    def add_task(self, connection: _Connection) -> None:
        """Queue a whole request to be answered; a refused request needs no thread."""
        request = connection.requests[0]
        if request.error is None and len(self.task_dispatcher.queue) >= _CONNECTIONS:
            request.error = _busy(f"{_CONNECTIONS} requests are waiting already")
        if request.error is None:
            super().add_task(connection)
        else:
            connection.refused = True

    def hold(self, size: int, most: int) -> bool:
        """Reserve `size` bytes of buffer if the total stays within `most`; return if they fit."""
        with self._lock:
            fits = self._held + size <= most
            self._held += size if fits else 0
        return fits

    def release(self, size: int) -> None:
        with self._lock:
            self._held -= size

    def _close_overdue(self) -> None:
        now = time.monotonic()
        transfer_s = _CROWDED_S if self._held > _BODIES // 2 else _TRANSFER_S
        for state, patience_s in (("head", _HEAD_S), ("transfer", transfer_s)):
            waiting = [c for c in self.active_channels.values() if c.state == state]
            waiting.sort(key=lambda connection: connection.since, reverse=True)
            for place, connection in enumerate(waiting):
                if place >= _CONNECTIONS or now - connection.since > patience_s:
                    connection.handle_close()


class _Request(HTTPRequestParser):  # type: ignore[misc]
    """A request being received; refused as soon as its head is whole, or the buffers are full."""

    def __init__(self, adjustments: Adjustments, server: Server) -> None:
        super().__init__(adjustments)
        self._server = server
        self._held = 0

    def parse_header(self, header_plus: bytes) -> None:
        """Parse the head, then decide whether to receive the body."""
        super().parse_header(header_plus)
        self.headers["CONNECTION"] = "close"
        secret = self._server.secret
        if secret is not None and not secret.admit(self.headers.get("AUTHORIZATION")):
            self._refuse(refusal(secret))
        elif self.chunked:
            message = "the body has no length: send it with a Content-Length"
            self._refuse(ChironError("length-required", message, status=411))

    def received(self, data: bytes) -> int:
        """Receive `data`; drop everything after the request."""
        consumed: int = super().received(data)
        size = self.body_bytes_received - self._held
        if size and self.error is None:
            if self._server.hold(size, _BODIES):
                self._held += size
            else:
                self._refuse(_busy("there is no room for the body"))
        return len(data) if self.completed and not self.empty else consumed

    def close(self) -> None:
        super().close()
        self._server.release(self._held)
        self._held = 0

    def _refuse(self, error: ChironError) -> None:
        self.close()
        self.body_rcv = None
        self.content_length = 0
        self.expect_continue = False
        self.error = error
        self.completed = True


class _Refusal(ErrorTask):  # type: ignore[misc]
    """The answer to a request that never reaches the application, in the application's form."""

    def execute(self) -> None:
        error = self.request.error
        if not isinstance(error, ChironError):  # an error of waitress
            code = error.reason.lower().replace(" ", "-")
            error = ChironError(code, f"request: {error.body}", status=error.code)
        content, kind = render_problem(Problem.of(error), self.request.headers.get("ACCEPT"))
        body = content.encode()
        self.status = f"{error.status} {HTTPStatus(error.status).phrase}"
        self.response_headers.append(("Content-Type", kind))
        secret = self.channel.server.secret
        if error.status == HTTPStatus.UNAUTHORIZED and secret is not None:
            headers = (("WWW-Authenticate", challenge) for challenge in challenges(secret))
            self.response_headers.extend(headers)
        if error.status == HTTPStatus.TOO_MANY_REQUESTS:
            self.response_headers.append(("Retry-After", str(RETRY_AFTER_S)))
        _log.info("refused", extra={"status": error.status, "code": error.code})
        self.set_close_on_finish()
        self.content_length = len(body)
        self.write(body)


class _Connection(HTTPChannel):  # type: ignore[misc]
    """A connection, and when it entered its state (time.monotonic)."""

    error_task_class = _Refusal
    will_close: bool

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.since = time.monotonic()
        self.refused = False
        self._lingers = False
        self._answer = 0
        super().__init__(*arguments, **options)

    def parser_class(self, adjustments: Adjustments) -> _Request:
        """Return a request with a reference to the server."""
        return _Request(adjustments, self.server)

    @property
    def state(self) -> Literal["head", "transfer", "work"]:
        """The state: waiting for a head (or the close), transferring, or being worked on."""
        if self.requests:
            return "work"
        coming = self.request is not None and self.request.headers_finished
        leaving = self.close_when_flushed or self.total_outbufs_len
        return "transfer" if coming or leaving else "head"

    def received(self, data: bytes) -> bool:
        """Receive data of a request; data after the request is dropped."""
        if self._lingers:
            return False
        before = self.state
        super().received(data)
        if self.refused:
            self.refused = False
            self.service()
        elif self.state != before:
            self.since = time.monotonic()
        return True

    def service(self) -> None:
        super().service()
        self.since = time.monotonic()

    def write_soon(self, data: Any) -> int:
        """Queue `data` to be sent; if the buffers are full, the answer is aborted."""
        with self.outbuf_lock:  # so that no close meanwhile releases the buffer
            if not self.connected or not self.server.hold(len(data), _HELD):
                raise ClientDisconnected
            self._answer += len(data)
            return int(super().write_soon(data))

    def handle_close(self) -> None:
        """Close the connection; after an answer, only for writing, until the client closes it.

        Closing with unread data would reset the connection and lose the answer. A connection that
        breaks while its last bytes are sent is closed already.
        """
        if self.will_close and self.connected:
            self.will_close = False
            self._lingers = True
            self.since = time.monotonic()
            with suppress(OSError):
                self.socket.shutdown(socket.SHUT_WR)
                return
        super().handle_close()
        if self.request is not None:
            self.request.close()
        self.server.release(self._answer)
        self._answer = 0


def _busy(what: str) -> ChironError:
    return ChironError("busy", f"{what}: try again soon", status=429)

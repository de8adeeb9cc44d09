"""Serves an application over HTTP: connections, with a bound on the memory that they hold."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from wrap.core.shedding import AT_ONCE, MOMENT_S, Bounds, has_stalled

from .connection import REQUEST_OF, Channel, LaterError
from .dispatcher import Dispatcher
from .program import STOP, within_descriptors
from .request import HEAD, REQUEST, Parser

#: Bytes to read from a connection at once; waitress reads 8 KiB in each turn of its loop.
_READ = 1 << 18
#: The most connections, and the most as a share (1 in 2) of the descriptors.
_CONNECTIONS, _CONNECTIONS_SHARE = 1000, 2
#: How often to check for clients that do not read their answers, in seconds.
_LOOK_S = 10
#: Longest wait of a thread for memory for another answer, in seconds.
_RELIEF_S = 1.0


@dataclass(frozen=True)
class Hooks:
    """Callbacks and settings of the program that serves."""

    #: Paths whose GET the loop answers at once, even if all threads are busy; `app` must be quick.
    probes: Collection[str] = ("/_/health",)
    #: Whether a request with these headers (`CONTENT_TYPE`) is answered like a probe.
    unqueued: Callable[[Mapping[str, str]], bool] = lambda _: False
    #: How long requests in flight may take at the end, in seconds.
    drain_s: float = 5.0
    #: Whether it may stop accepting requests, so many seconds after the signal to end. Its watchdog
    #: gets the signal then too, and still passes on requests of clients that have not noticed.
    may_exit: Callable[[float], bool] = lambda _: True
    #: Called as soon as the signal to end has come.
    ending: Callable[[], None] = lambda: None
    #: Called when the last request has been answered; returns the exit status.
    close: Callable[[], int] = lambda: 0
    #: Whether to restart the program in this process as soon as nothing is in flight. Connections
    #: stay: requests that come meanwhile wait in them.
    worn: Callable[[], bool] = lambda: False
    #: Called after each turn of the loop, at least once a second until `close` is called.
    turned: Callable[[], None] = lambda: None
    #: Called for each request but probes, in any thread. Arguments: method, HTTP status of the
    #: answer, seconds until the answer.
    answered: Callable[[str, str, float], None] = lambda *_: None


class Server(TcpWSGIServer):  # type: ignore[misc]
    """waitress's server, with the bounds of `wrap.core.shedding`, and with later answers.

    Args:
        most: bytes that all connections together may hold.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        listener: socket.socket,
        most: int,
        dispatcher: Dispatcher,
        hooks: Hooks,
    ) -> None:
        self.channel_class = Channel
        self.hooks = hooks
        connections = within_descriptors(_CONNECTIONS, _CONNECTIONS_SHARE)
        self.bounds = Bounds(most, connections, REQUEST)
        self.held = 0
        self._called = False
        #: No other connection can be accepted until then.
        self._accepts_at = 0.0
        self._app = app
        self._counting = threading.Lock()
        self._relieved = threading.Event()
        #: Actions for the loop itself, such as answers that need no thread.
        self._at_once: deque[Callable[[], None]] = deque()
        self._own_thread = threading.get_ident()
        #: `channel` is the connection that this thread answers.
        self.own = threading.local()
        settings = Adjustments(
            sockets=[listener],
            recv_bytes=_READ,
            connection_limit=sys.maxsize,
            backlog=socket.SOMAXCONN,
            inbuf_overflow=most + 1,  # never into files
            outbuf_overflow=sys.maxsize,
            max_request_header_size=HEAD,
            channel_request_lookahead=1,  # notices a closed connection
            cleanup_interval=_LOOK_S,
            ident=None,
        )
        family, kind, protocol = listener.family, listener.type, listener.proto
        super().__init__(
            self._apply,
            {},
            _sock=listener,
            dispatcher=dispatcher,
            adj=settings,
            sockinfo=(family, kind, protocol, listener.getsockname()),
            bind_socket=False,
        )

    def _apply(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Return the answer if there is one; else call the application, which may answer later."""
        request: Parser = environment[REQUEST_OF]
        if request.answer is not None:
            return request.answer(environment, start_response)
        body = self._app(environment, start_response)
        if request.later:
            raise LaterError
        return body

    def turn(self, patience_s: float) -> None:
        """Handle the events of the connections; wait for events no longer than `patience_s`."""
        until_room_s = self._accepts_at - time.monotonic()
        if until_room_s > 0:
            patience_s = min(patience_s, until_room_s)
        wasyncore.loop(timeout=patience_s, use_poll=True, map=self._map, count=1)
        if self._called:
            self.accept_waiting()
        while self._at_once:
            self._at_once.popleft()()
        if self.held > self.bounds.size:
            self._relieve(self.bounds.size)
            self._relieved.set()
        self.hooks.turned()

    def add_task(self, channel: Channel) -> None:
        """Have a thread serve the request, or the loop if it needs no thread."""
        request = channel.requests[0]
        request.arrived = channel.arrived
        if not request.error:
            is_probe = request.path in self.hooks.probes and request.command in ("GET", "HEAD")
            request.is_probe = is_probe or self.hooks.unqueued(request.headers)
        if request.error or request.is_probe:
            self.do_soon(channel.service)  # a thread may have called this, after the request before
        else:
            super().add_task(channel)

    def do_soon(self, action: Callable[[], None]) -> None:
        """Have the loop call `action`; any thread may call this."""
        self._at_once.append(action)
        self.pull_trigger()

    def pull_trigger(self) -> None:
        """Wake the loop, unless a connection that was answered has nothing for it to do."""
        answered = getattr(self.own, "channel", None)
        if answered is None or not answered.needs_no_turn:
            super().pull_trigger()

    def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted before a restart."""
        with contextlib.suppress(OSError):  # it is closed
            Channel(self, connection, connection.getpeername(), self.adj, map=self._map)

    def handle_accept(self) -> None:
        """Note that connections wait. They are accepted when the loop has handled its events.

        An event may be of a connection that gives way, whose descriptor the new connection gets.
        """
        self._called = True

    def accept_waiting(self) -> bool:
        """Accept connections, and return whether any were accepted.

        Above the bound the longest silent one gives way; if none is, new ones wait in the kernel.
        """
        self._called = accepted = False
        active = self.active_channels
        places = self.bounds.places(active.values(), time.time())
        for silent in places:
            before = len(active)
            super().handle_accept()
            if len(active) == before:
                return accepted
            accepted = True
            if silent is not None:
                silent.handle_close()
        if len(places) < AT_ONCE:
            self._accepts_at = time.monotonic() + MOMENT_S
        return accepted

    def readable(self) -> bool:
        return bool(super().readable()) and time.monotonic() >= self._accepts_at

    def maintenance(self, now: float) -> None:
        """Close silent connections, and those whose client does not read its answer."""
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            if has_stalled(channel, now):
                channel.abort()

    def count(self, channel: Channel) -> None:
        """Update the bytes that a connection holds."""
        with self._counting:
            now = channel.size()
            self.held += now - channel.held
            channel.held = now

    def wait_for_relief(self) -> None:
        """Wait until the loop has freed memory for another answer, if there is too little."""
        if self.held > self.bounds.size and threading.get_ident() != self._own_thread:
            self._relieved.clear()
            self.pull_trigger()
            self._relieved.wait(_RELIEF_S)

    def relieve_now(self) -> None:
        """Free memory before more is read: the bytes that arrived in one turn may be too many."""
        if self.held > self.bounds.size:
            self._relieve(self.bounds.while_reading)

    def _relieve(self, most: int) -> None:
        """Make connections give way until all hold at most `most`, as far as they may."""
        for channel in self.bounds.yielding(self.active_channels.values()):
            if self.held <= most:
                return
            channel.give_way()

    def let_go(self) -> None:
        """In a process that a handler has forked: close port and connections, end at signals."""
        for channel in list(self._map.values()):
            channel.socket.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)

    def forget(self, channel: Channel) -> bool:
        """Remove a closed connection; return whether its request had not begun."""
        return bool(self.task_dispatcher.forget(channel))

    def in_flight(self, late: bool = False) -> bool:
        """Return whether a request is partly read (unless `late`), served, or unanswered."""
        return any(self.task_dispatcher.count()) or any(
            channel.is_owed or (channel.request is not None and not late)
            for channel in self.active_channels.values()
        )

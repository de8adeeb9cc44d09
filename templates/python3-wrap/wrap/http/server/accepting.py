"""Serves an application over HTTP: connections, with a bound on what they hold."""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from typing import Any

from waitress import wasyncore
from waitress.adjustments import Adjustments
from waitress.server import TcpWSGIServer

from .connection import REQUEST_OF, Channel, LaterError
from .program import STOP, within_descriptors
from .request import HEAD, REQUEST, Parser
from .turns import Turns

#: Read from a connection at once; waitress would take 8 KiB, each with a round of its loop.
_READ = 1 << 18
#: Connections: no more than so many, and no more than this share of the descriptors.
_CONNECTIONS, _CONNECTIONS_SHARE = 1000, 2
#: Where room is made while more is read, so much is made, as a share of the bound.
_ROOM_SHARE = 8
#: Connections that are accepted between two looks at those that there are.
_AT_ONCE = 64
#: How long a connection may be silent, also where many others want its place, in seconds.
_MOMENT_S = 0.02
#: An answer of which the client takes nothing for so long, in seconds, is given up.
_STALLED_S, _LOOK_S = 30, 10
#: Longest wait of a thread until there is room for another answer, in seconds.
_RELIEF_S = 1.0


class Server(TcpWSGIServer):  # type: ignore[misc]
    """waitress's server, with a bound on what its connections hold, and answers out of turn.

    Parameters
    ----------
    most
        Bytes that all connections together may hold.
    probes
        Paths that the loop answers by itself.
    turned, answered
        As `serve` has them.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        listener: socket.socket,
        most: int,
        probes: Collection[str],
        turns: Turns,
        turned: Callable[[], None],
        answered: Callable[[str, str, float], None],
    ) -> None:
        self.channel_class = Channel
        self.answered = answered
        self._turned = turned
        self.most = most
        self.held = 0
        self._connections = within_descriptors(_CONNECTIONS, _CONNECTIONS_SHARE)
        self._called = False
        #: There is no place for another connection until then.
        self._accepts_at = 0.0
        self._app = app
        self._counting = threading.Lock()
        self._relieved = threading.Event()
        self._probes = frozenset(probes)
        self._at_once: deque[Channel] = deque()
        settings = Adjustments(
            sockets=[listener],
            recv_bytes=_READ,
            connection_limit=sys.maxsize,
            backlog=socket.SOMAXCONN,
            inbuf_overflow=most + 1,  # never into files
            outbuf_overflow=sys.maxsize,
            max_request_header_size=HEAD,
            channel_request_lookahead=1,  # a connection that is gone is noticed
            cleanup_interval=_LOOK_S,
            ident=None,
        )
        family, kind, protocol = listener.family, listener.type, listener.proto
        super().__init__(
            self._apply,
            {},
            _sock=listener,
            dispatcher=turns,
            adj=settings,
            sockinfo=(family, kind, protocol, listener.getsockname()),
            bind_socket=False,
        )

    def _apply(self, environment: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """The answer that has been given; else ask the application, which may give it later."""
        request: Parser = environment[REQUEST_OF]
        if request.answer is not None:
            return request.answer(environment, start_response)
        body = self._app(environment, start_response)
        if request.later:
            raise LaterError
        return body

    def turn(self, patience_s: float) -> None:
        """Do what there is to do on the connections; wait for that no longer than `patience_s`."""
        until_room_s = self._accepts_at - time.monotonic()
        if until_room_s > 0:
            patience_s = min(patience_s, until_room_s)
        wasyncore.loop(timeout=patience_s, use_poll=True, map=self._map, count=1)
        if self._called:
            self.accept_waiting()
        while self._at_once:
            self._at_once.popleft().service()
        if self.held > self.most:
            self._relieve(self.most)
            self._relieved.set()
        self._turned()

    def add_task(self, channel: Channel) -> None:
        """Have a thread serve the request, or the loop where that needs no thread."""
        request = channel.requests[0]
        request.arrived = channel.arrived
        if not request.error:
            request.is_probe = request.path in self._probes and request.command in ("GET", "HEAD")
        if request.error or request.is_probe:
            self._at_once.append(channel)
            self.pull_trigger()  # a thread may have found it behind another one
        else:
            super().add_task(channel)

    def take(self, connection: socket.socket) -> None:
        """Serve a connection that was accepted before."""
        with contextlib.suppress(OSError):  # it is gone
            Channel(self, connection, connection.getpeername(), self.adj, map=self._map)

    def handle_accept(self) -> None:
        """Note that connections wait. They are accepted when the loop has done its events.

        One of these may be of a connection that gives way, whose descriptor the new one gets.
        """
        self._called = True

    def accept_waiting(self) -> bool:
        """Accept connections, each above the bound in place of the longest silent; whether any was.

        Where none has been silent for a moment, those that wait stay in the kernel.
        """
        self._called = accepted = False
        active, silent = self.active_channels, list[Channel]()
        room = self._connections - len(active)
        if room < _AT_ONCE:
            since = time.time() - _MOMENT_S
            silent = [each for each in active.values() if not each.is_owed and _since(each) < since]
            silent.sort(key=_since)
        for number in range(min(_AT_ONCE, room + len(silent))):
            before = len(active)
            super().handle_accept()
            if len(active) == before:
                return accepted
            accepted = True
            if number >= room:
                silent[number - room].handle_close()
        if room + len(silent) < _AT_ONCE:
            self._accepts_at = time.monotonic() + _MOMENT_S
        return accepted

    def readable(self) -> bool:
        """Whether to look for connections that wait."""
        return bool(super().readable()) and time.monotonic() >= self._accepts_at

    def maintenance(self, now: float) -> None:
        """Close connections that have been silent, and those whose client takes no answer."""
        super().maintenance(now)
        for channel in list(self.active_channels.values()):
            if channel.total_outbufs_len and channel.last_activity < now - _STALLED_S:
                channel.abort()

    def count(self, channel: Channel) -> None:
        """Note what a connection holds now."""
        with self._counting:
            now = channel.size()
            self.held += now - channel.held
            channel.held = now

    def wait_for_relief(self) -> None:
        """Let the loop make room before another answer is made, if there is too little."""
        if self.held > self.most:
            self._relieved.clear()
            self.pull_trigger()
            self._relieved.wait(_RELIEF_S)

    def relieve_now(self) -> None:
        """Make room before more is read: all that has come for this turn may be too much."""
        if self.held > self.most:
            self._relieve(self.most - self.most // _ROOM_SHARE)

    def _relieve(self, most: int) -> None:
        """Hold no more than `most`; but one answer, however large it is, goes out."""
        fair = max(self.most // self._connections, REQUEST)  # each may have it, whatever others do
        yielding = [
            channel
            for channel in self.active_channels.values()
            if channel.coming + channel.total_outbufs_len > fair
        ]
        yielding.sort(key=_since)
        sending = [channel for channel in yielding if channel.total_outbufs_len > fair]
        for channel in yielding:
            if self.held <= most:
                return
            if channel not in sending[-1:]:
                channel.give_way()

    def let_go(self) -> None:
        """In a process that a handler has forked: hold no port and no connection, end when told."""
        for channel in list(self._map.values()):
            channel.socket.close()
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOP)

    def forget(self, channel: Channel) -> bool:
        """Take a connection out of the queue; whether it was there, and nothing had begun."""
        dispatcher = self.task_dispatcher
        with dispatcher.lock, contextlib.suppress(ValueError):
            dispatcher.queue.remove(channel)
            return True
        return False

    def in_flight(self, late: bool = False) -> bool:
        """Whether a request is here: in part (unless it is `late`), in work, or to be answered."""
        dispatcher = self.task_dispatcher
        return bool(dispatcher.queue or dispatcher.active_count) or any(
            channel.is_owed or (channel.request is not None and not late)
            for channel in self.active_channels.values()
        )


def _since(channel: Channel) -> float:
    return float(channel.last_activity)

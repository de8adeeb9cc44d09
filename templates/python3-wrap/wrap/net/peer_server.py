"""Accepts connections of other wraps of the deployment.

The loop accepts them and performs their handshakes, so an unproved connection takes no thread. It
takes a descriptor and some hundred bytes, and the number of such connections is bounded.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from collections.abc import Callable
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from wrap.core.unproven import UnauthenticatedCallers
from wrap.event_loop.loop import Loop, Timers
from wrap.http.server.program import within_descriptors
from wrap.net.handshake import CONNECT_S, Handshake, prepare
from wrap.net.peer_connection import ENDS, Message, PeerConnection, Received
from wrap.observe.metrics import Counter
from wrap.values.budget import MemoryBudget

#: Pause if no connection can be accepted for a moment, and between checks of pending work, in
#: seconds.
_PAUSE_S = 0.01
#: The most unproved connections, also limited to this share (1 in 8) of the descriptors.
_UNPROVED, _SHARE = 256, 8
#: The time that each has at least, even if many others are waiting, in seconds.
_MOMENT_S = 0.05
#: Seconds in which at most one line about refusals is logged.
_LOGGED_S = 1.0
#: Connections to accept before the loop serves all other channels again.
_AT_ONCE = 16


class Served(Protocol):
    """The handler of other wraps' messages."""

    ending: bool

    @property
    def busy(self) -> bool:
        """Whether work is pending."""

    def handle(self, connection: PeerConnection, message: Received) -> None:
        """Handle a message. Raises ValueError or TypeError if it is invalid."""

    def connection_ended(self, connection: PeerConnection, why: Exception | None) -> None:
        """Note that a connection has ended: in an orderly way if `why` is None."""


def own_host(gateway_url: str) -> str:
    """Return this machine's address as seen from the gateway's side. Raises OSError."""
    url = urlsplit(gateway_url)
    (family, kind, _, _, address), *_ = socket.getaddrinfo(
        url.hostname, url.port or 80, type=socket.SOCK_DGRAM
    )
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # sends nothing
        return str(probe.getsockname()[0])


class _Caller:
    """A connection that has not yet proved that it is of this deployment. Raises OSError."""

    sending, receiving = False, True

    def __init__(self, channel: socket.socket, key: bytes) -> None:
        self.channel = channel
        channel.setblocking(False)
        prepare(channel)
        self._handshake = Handshake.called(key)
        channel.send(self._handshake.first)

    def fileno(self) -> int:
        return self.channel.fileno()

    def proves(self) -> bool:
        """Read; return whether the proof is complete. Raises OSError; ValueError if it is wrong.

        The reply goes out at once, as nothing else has been sent over the connection.
        """
        handshake = self._handshake
        if reply := handshake.hear(self.channel.recv(handshake.wanted)):
            self.channel.send(reply)
        return not handshake.wanted


class Refusals:
    """Counts connections that were refused, and logs them at a bounded rate; for the loop only."""

    def __init__(self, times: Timers, clock: Callable[[], float] = time.monotonic) -> None:
        self.count = Counter(
            "chiron_direct_refusals_total",
            "Direct connections that were refused, or broken off for what came over them.",
        )
        self._times = times
        self._clock = clock
        self._refused = self._logged = 0
        self._pauses = False
        self._why: Exception | None = None

    def add(self, why: Exception) -> None:
        """Count a refusal; log it now, or together with others when the pause is over."""
        self.count.add()
        self._refused += 1
        self._why = why
        if not self._pauses:
            self._log()

    def _log(self) -> None:
        more, self._logged = self._refused - self._logged, self._refused
        self._pauses = more > 0
        if not more:
            return
        self._times.call_at(self._clock() + _LOGGED_S, self._log)
        what = "a direct connection was" if more == 1 else f"{more} direct connections were"
        last = "" if more == 1 else " of the last"
        print(f"{what} refused, the {self._refused}. so far{last}: {self._why}")


class PeerServer:
    """Accepts connections of other wraps of the deployment.

    Args:
        key: the key that both sides prove to have.
        host: the address to listen on.
        longest: most bytes of an object.
        budget: while it is full, nothing more is read.

    Raises OSError if it cannot listen.
    """

    sending = False

    def __init__(
        self, key: bytes, host: str, longest: int, loop: Loop, budget: MemoryBudget
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family, backlog=socket.SOMAXCONN)
        self._socket.setblocking(False)
        #: The address on which it listens, as HOST PORT.
        self.address = f"{host} {self._socket.getsockname()[1]}"
        self.refusals = Refusals(loop)
        self.receiving = True
        self._key = key
        self._longest = longest
        self._loop = loop
        self._budget = budget
        self._served: Served
        #: Connections that have carried a message; the others may become streams.
        self._connections = weakref.WeakSet[PeerConnection]()
        self._adding = threading.Lock()
        most = within_descriptors(_UNPROVED, _SHARE)
        self._unproved = UnauthenticatedCallers[_Caller](most, _MOMENT_S, CONNECT_S)
        self._looks = self._closing = False
        os.register_at_fork(after_in_child=self._let_go)

    def fileno(self) -> int:
        return self._socket.fileno()

    def serve(self, served: Served) -> None:
        """Accept connections from now on, and pass their messages to `served`."""
        self._served = served
        self._loop.watch(self, self._accept)

    @property
    def busy(self) -> bool:
        """Whether work is pending, or bytes are still being sent."""
        return self._served.busy or any(each.sending for each in self._all_connections())

    def end(self) -> None:
        """Tell the other wraps that this replica is ending.

        Connections stay open: pending requests are answered, and may need more messages.
        """
        self._served.ending = True
        for connection in self._all_connections():
            connection.send(Message(ENDS))

    def close(self, patience_s: float) -> None:
        """Close when no work is pending, at the latest after `patience_s`."""
        until = time.monotonic() + patience_s
        while self.busy and time.monotonic() < until:
            time.sleep(_PAUSE_S)
        self._closing = True
        self._loop.forget(self)
        self._socket.close()

    def _all_connections(self) -> list[PeerConnection]:
        with self._adding:
            return list(self._connections)

    def _let_go(self) -> None:
        """In a process that a handler has forked: close the inherited sockets."""
        for each in (self._socket, *(caller.channel for caller in self._unproved.all())):
            with contextlib.suppress(OSError):
                os.close(each.detach())

    def _accept(self, _writable: bool, _readable: bool) -> None:
        for _ in range(_AT_ONCE):
            now = time.monotonic()
            free_from = self._unproved.free_from()
            if free_from > now:
                self._pause(free_from)
                return
            try:
                channel, _ = self._socket.accept()
            except BlockingIOError:
                return
            except OSError:  # closed, or no descriptor is left for a moment
                self._pause(now + _PAUSE_S)
                return
            self._greet(channel, now)

    def _pause(self, until: float) -> None:
        """Accept nothing until then; new connections wait in the kernel."""
        self._receive(False)
        self._loop.call_at(until, partial(self._receive, True))

    def _receive(self, receiving: bool) -> None:
        if not self._closing:
            self.receiving = receiving
            self._loop.renew(self)

    def _greet(self, channel: socket.socket, now: float) -> None:
        try:
            caller = _Caller(channel, self._key)
            self._loop.watch(caller, partial(self._hear, caller))
        except OSError as error:
            channel.close()
            self.refusals.add(error)
            return
        if oldest := self._unproved.add(caller, now):
            self._refuse(oldest, ConnectionError("it gave way to others before any proof"))
        if not self._looks:
            self._look()

    def _look(self) -> None:
        """Refuse callers that are late, and check again when the next one is."""
        for caller in self._unproved.expired(time.monotonic()):
            self._refuse(caller, TimeoutError("it did not say in time what it is"))
        next_expiry = self._unproved.next_expiry()
        self._looks = next_expiry is not None
        if next_expiry is not None:
            self._loop.call_at(next_expiry, self._look)

    def _hear(self, caller: _Caller, _writable: bool, _readable: bool) -> None:
        try:
            proved = caller.proves()
        except BlockingIOError:
            return
        except (OSError, ValueError) as error:
            self._refuse(caller, error)
            return
        if proved:
            self._unproved.remove(caller)
            self._loop.forget(caller)
            PeerConnection(
                caller.channel, self._loop, self._longest, self._got, self._gone, self._budget
            )

    def _refuse(self, caller: _Caller, why: Exception) -> None:
        self._unproved.remove(caller)
        self._loop.forget(caller)
        caller.channel.close()
        self.refusals.add(why)

    def _got(self, connection: PeerConnection, message: Received) -> None:
        with self._adding:
            self._connections.add(connection)
        self._served.handle(connection, message)

    def _gone(self, connection: PeerConnection, why: Exception | None) -> None:
        if why is not None and not isinstance(why, OSError):
            self.refusals.add(why)
        self._served.connection_ended(connection, why)

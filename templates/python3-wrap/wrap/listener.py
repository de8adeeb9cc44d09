"""Takes the calls of other wraps of the deployment over connections of their own."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from urllib.parse import urlsplit

from wrap.connection import STALLED_S, greet, received, send
from wrap.frames import Unsent
from wrap.loop import Loop
from wrap.messages import Request
from wrap.threads import ThreadPool

#: Pause where no connection can be accepted for a moment, in seconds.
_PAUSE_S = 0.01
#: What runs a call of another wrap: it is given the request, for how many seconds it may take, and
#: what takes the answer, a status and its frames.
Serve = Callable[[Request, float, Callable[[int, list[Unsent]], None]], None]


def own_host(gateway_url: str) -> str:
    """The address by which this machine is known to the gateway's side. Raises OSError."""
    url = urlsplit(gateway_url)
    (family, kind, _, _, address), *_ = socket.getaddrinfo(
        url.hostname, url.port or 80, type=socket.SOCK_DGRAM
    )
    with socket.socket(family, kind) as probe:
        probe.connect(address)  # sends nothing
        return str(probe.getsockname()[0])


class Listener:
    """Takes the calls of other wraps of the deployment.

    Parameters
    ----------
    key
        What both sides prove that they have.
    host
        The address to listen on.
    longest
        Bytes that an object may have.

    Attributes
    ----------
    address
        Where it listens, as HOST PORT.
    refused
        Connections that were none of this deployment's.

    Raises OSError where it cannot listen.
    """

    def __init__(
        self, key: bytes, host: str, longest: int, loop: Loop, threads: ThreadPool, serve: Serve
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family)
        self.address = f"{host} {self._socket.getsockname()[1]}"
        self.refused = 0
        self._key = key
        self._longest = longest
        self._loop = loop
        self._threads = threads
        self._serve = serve
        self._open: set[_Served] = set()
        self._idle: set[_Served] = set()
        self._changed = threading.Condition()
        self._closing = False
        os.register_at_fork(after_in_child=self._let_go)
        threading.Thread(target=self._accept, name="direct", daemon=True).start()

    def close(self, patience_s: float) -> None:
        """Take no more calls, and wait until those in hand are answered."""
        self._closing = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()
        with self._changed:
            for each in list(self._idle):
                self._end(each)
            self._changed.wait_for(lambda: not self._open, patience_s)

    def _let_go(self) -> None:
        """In a process that a handler has forked: keep nothing of it."""
        for each in (self._socket, *(served.channel for served in self._open)):
            with contextlib.suppress(OSError):
                os.close(each.detach())

    def _accept(self) -> None:
        while not self._closing:
            try:
                channel, _ = self._socket.accept()
            except OSError:  # closed, or no descriptor is left for a moment
                time.sleep(_PAUSE_S)
                continue
            with contextlib.suppress(RuntimeError):  # no thread can be had: it is closed
                self._threads.start(partial(self._greet, channel))

    def _greet(self, channel: socket.socket) -> None:
        try:
            greet(channel, self._key)
        except (OSError, ValueError) as error:
            channel.close()
            self._refuse(error)
            return
        served = _Served(channel)
        with self._changed:
            self._open.add(served)
        self._await(served)

    def _refuse(self, why: Exception) -> None:
        self.refused += 1
        print(f"a direct connection was refused, the {self.refused}. so far: {why}")

    def _await(self, served: _Served) -> None:
        """Let the loop say when the next call comes."""
        with self._changed:
            if self._closing:
                self._end(served)
                return
            self._idle.add(served)
        self._loop.watch(served, lambda *_: self._called(served))

    def _called(self, served: _Served) -> None:
        with self._changed:
            if served not in self._idle:
                return
            self._idle.remove(served)
        self._loop.forget(served)
        self._threads.start(partial(self._take, served))

    def _take(self, served: _Served) -> None:
        """Read a call and have it run."""
        try:
            served.channel.settimeout(STALLED_S)
            message = received(served.channel, self._longest)
            if message is None:
                self._drop(served)
                return
            seconds, content = message
            request = Request.read(iter(content))
            if request is None:
                raise ValueError("a message without a request")
        except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
            self._drop(served)
            self._refuse(error)
            return
        self._serve(request, seconds, partial(self._answer, served))

    def _answer(self, served: _Served, status: int, answer: list[Unsent]) -> None:
        try:
            send(served.channel, status, answer)
        except OSError:
            self._drop(served)
            return
        self._await(served)

    def _drop(self, served: _Served) -> None:
        with self._changed:
            self._end(served)

    def _end(self, served: _Served) -> None:
        if served in self._idle:
            self._idle.remove(served)
            self._loop.forget(served)
        self._open.discard(served)
        served.channel.close()
        self._changed.notify_all()


class _Served:
    """A connection of another wrap's."""

    def __init__(self, channel: socket.socket) -> None:
        self.channel = channel

    def fileno(self) -> int:
        """The descriptor to wait on."""
        return self.channel.fileno()

    @property
    def sending(self) -> bool:
        """An answer is written by the thread that has it."""
        return False

"""Takes connections of other wraps of the deployment."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
import weakref
from functools import partial
from typing import Protocol
from urllib.parse import urlsplit

from wrap.connection import greet
from wrap.line import Line, Received
from wrap.loop import Loop
from wrap.sink import Sink
from wrap.threads import ThreadPool

#: Pause where no connection can be accepted for a moment, and between looks at what is in hand, in
#: seconds.
_PAUSE_S = 0.01


class Served(Protocol):
    """What does as the messages of other wraps say."""

    draining: bool

    @property
    def busy(self) -> bool:
        """Whether something is in hand."""

    def awaits(self, line: Line) -> bool:
        """Whether an answer is to go over a connection."""

    def got(self, line: Line, message: Received) -> None:
        """Do what a message says. Raises ValueError or TypeError where it is none."""

    def gone(self, line: Line, why: Exception | None) -> None:
        """A connection has ended: orderly where there is no reason."""


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
    """Takes connections of other wraps of the deployment.

    Parameters
    ----------
    key
        What both sides prove that they have.
    host
        The address to listen on.
    longest
        Bytes that an object may have.
    sink
        While it is full, nothing more is read.

    Attributes
    ----------
    address
        Where it listens, as HOST PORT.
    refused
        Connections that were none of this deployment's.

    Raises OSError where it cannot listen.
    """

    def __init__(
        self, key: bytes, host: str, longest: int, loop: Loop, threads: ThreadPool, sink: Sink
    ) -> None:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.create_server((host, 0), family=family)
        self.address = f"{host} {self._socket.getsockname()[1]}"
        self.refused = 0
        self._key = key
        self._longest = longest
        self._loop = loop
        self._threads = threads
        self._sink = sink
        self._served: Served
        self._lines = weakref.WeakSet[Line]()
        self._closing = False
        os.register_at_fork(after_in_child=self._let_go)

    def serve(self, served: Served) -> None:
        """Take connections from now on, whose messages are for `served`."""
        self._served = served
        threading.Thread(target=self._accept, name="direct", daemon=True).start()

    def drain(self) -> None:
        """Take on nothing more; others can still send what is needed for what is in hand."""
        self._served.draining = True
        for line in list(self._lines):
            if not self._served.awaits(line):
                line.close()  # who has it looks for another replica

    def close(self, patience_s: float) -> None:
        """The same, and end when what is in hand is done."""
        self.drain()
        until = time.monotonic() + patience_s
        while self._served.busy and time.monotonic() < until:
            time.sleep(_PAUSE_S)
        self._closing = True
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes the thread that accepts
        self._socket.close()

    def _let_go(self) -> None:
        """In a process that a handler has forked: keep nothing of it."""
        with contextlib.suppress(OSError):
            os.close(self._socket.detach())

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
        served = self._served
        line = Line(channel, self._loop, self._longest, served.got, self._gone, self._sink)
        self._lines.add(line)

    def _gone(self, line: Line, why: Exception | None) -> None:
        if why is not None and not isinstance(why, OSError):
            self._refuse(why)
        self._served.gone(line, why)

    def _refuse(self, why: Exception) -> None:
        self.refused += 1
        print(f"a direct connection was refused, the {self.refused}. so far: {why}")

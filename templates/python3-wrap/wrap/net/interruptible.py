"""HTTP connections whose waits end when their thread is cancelled.

The exception that cancels a thread does not interrupt a system call in it (see
`wrap.event_loop.threads.Work.cancel`). So such a connection waits in many short calls.
"""

from __future__ import annotations

import select
import socket
import time
from typing import Any

import urllib3
from urllib3.connection import HTTPConnection

#: The longest wait of one call, and so the delay until a cancelled thread ends, in milliseconds.
_LOOK_MS = 250
_KEPT = 64


class _Socket(socket.socket):
    """A socket with a timeout, whose thread can be cancelled while it waits."""

    def recv_into(self, *arguments: Any, **options: Any) -> int:
        self._wait(select.POLLIN)
        return super().recv_into(*arguments, **options)

    def sendall(self, data: Any, flags: int = 0) -> None:
        unsent = memoryview(data).cast("B")
        while unsent:
            self._wait(select.POLLOUT)
            unsent = unsent[self.send(unsent, flags) :]

    def _wait(self, event: int) -> None:
        """Wait for `event`; TimeoutError if it does not come within the socket's timeout."""
        ends = time.monotonic() + (self.gettimeout() or 0.0)
        poll = select.poll()
        poll.register(self, event)
        while not poll.poll(_LOOK_MS):
            if time.monotonic() > ends:
                raise TimeoutError("timed out")


class _Connection(HTTPConnection):
    def connect(self) -> None:
        super().connect()
        timeout_s = self.sock.gettimeout()
        self.sock = _Socket(fileno=self.sock.detach())
        self.sock.settimeout(timeout_s)


class _Pool(urllib3.HTTPConnectionPool):
    ConnectionCls = _Connection


def pool_manager(retries: urllib3.Retry) -> urllib3.PoolManager:
    """Return a pool of connections that wait as this module describes.

    Every request needs a timeout. Over TLS a wait ends only at its timeout.
    """
    manager = urllib3.PoolManager(maxsize=_KEPT, retries=retries)
    manager.pool_classes_by_scheme = manager.pool_classes_by_scheme | {"http": _Pool}
    return manager

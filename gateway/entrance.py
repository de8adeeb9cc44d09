"""Lets connections in: not more than descriptors allow, and none that is stuck or idle for long."""

from __future__ import annotations

import asyncio
import resource
import socket
from math import ceil
from typing import cast

from aiohttp import web

BACKLOG = 1024
#: Most connections at once: each may hold a whole body, and one more descriptor at its function.
_MOST = 4096
#: How long a connection that is not let in may take to say what it wants.
_PATIENCE_S = 1.0
_FULL = b"the gateway has as many connections as it can take: try again later\n"
_REFUSAL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nRetry-After: 1\r\n"
    b"Connection: close\r\nContent-Length: %d\r\n\r\n%b" % (len(_FULL), _FULL)
)


async def open_entrance(
    server: web.Server, listener: socket.socket, stuck_s: float
) -> asyncio.Server:
    """Accept connections of `listener` for `server`.

    Args:
        stuck_s: after how long the kernel ends a connection whose client takes no more of an
            answer, in seconds.
    """
    # Inherited by the sockets that it accepts.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, ceil(1000 * stuck_s))
    most = min(_MOST, _raised_descriptor_limit() // 2)

    def let_in() -> asyncio.BaseProtocol:
        return server() if len(server.connections) < most else _Refusal()

    loop = asyncio.get_running_loop()
    return await loop.create_server(let_in, sock=listener, backlog=BACKLOG)


class _Refusal(asyncio.Protocol):
    """Answers whatever comes with 503 and ends the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Give it a moment: a client that is cut off while sending does not see the answer."""
        self._transport = cast(asyncio.Transport, transport)
        asyncio.get_running_loop().call_later(_PATIENCE_S, self._transport.abort)

    def data_received(self, data: bytes) -> None:
        """Answer the first piece."""
        if not self._transport.is_closing():
            self._transport.write(_REFUSAL)
            self._transport.close()


def _raised_descriptor_limit() -> int:
    """Take as many descriptors as this process may have; returns how many that are."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard

"""The wrap's own sockets, which have no timeout, whatever default a function sets.

``socket.setdefaulttimeout`` applies to each socket that its process makes afterwards. Such a socket
is non-blocking, and so is its descriptor in another process.
"""

from __future__ import annotations

import socket


def patient(made: socket.socket) -> socket.socket:
    """Remove the timeout of a new socket."""
    made.settimeout(None)
    return made


def pair(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    """Return two connected AF_UNIX sockets without a timeout."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    return patient(one), patient(other)

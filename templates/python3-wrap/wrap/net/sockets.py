"""The wrap's own sockets: they wait as long as they are told, whatever a function sets for all.

``socket.setdefaulttimeout`` holds for each socket that its process makes from then on. Such a
socket does not block, and neither does its descriptor in another process.
"""

from __future__ import annotations

import socket


def patient(made: socket.socket) -> socket.socket:
    """A socket that has just been made, without a time limit."""
    made.settimeout(None)
    return made


def pair(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    """Two connected sockets of AF_UNIX, without a time limit."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    return patient(one), patient(other)

"""The wrap's own sockets, which have no timeout, whatever default a function sets.

``socket.setdefaulttimeout`` applies to each socket that its process makes afterwards. Such a socket
is non-blocking, and so is its descriptor in another process.
"""

from __future__ import annotations

import socket
import struct

#: socket(7), SO_PEERCRED: the process, its user and its group.
_CREDENTIALS = struct.Struct("iII")


def patient(made: socket.socket) -> socket.socket:
    """Remove the timeout of a new or received socket, and keep it from programs."""
    made.settimeout(None)
    made.set_inheritable(False)
    return made


def pair(kind: int = socket.SOCK_STREAM) -> tuple[socket.socket, socket.socket]:
    """Return two connected AF_UNIX sockets without a timeout."""
    one, other = socket.socketpair(socket.AF_UNIX, kind)
    return patient(one), patient(other)


def user_of(channel: socket.socket) -> int:
    """Return the user of the process at the other end of an AF_UNIX socket."""
    said = channel.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(said)[1])

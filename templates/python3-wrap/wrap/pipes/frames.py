"""The frames in which a stream is sent over a socket.

A frame is a length, followed by that many bytes. The length 0 ends the stream. After the highest
length comes a failed writer's error. If the socket ends without either, the writer was lost.
"""

from __future__ import annotations

import socket
import struct

from wrap.core.errors import TaskError
from wrap.core.recovery import STREAM_LOST

#: Bytes that a file buffers, and that are read or written at once.
BUFFER = 1 << 16
LENGTH = struct.Struct("!I")
END, FAILED = 0, (1 << 32) - 1
#: How often a waiting thread checks whether it was cancelled, in milliseconds.
LOOK_MS = 200
#: Half of the kernel's buffer for a stream on each side.
_KERNEL_BUFFER = 448 << 10


def bounded(channel: socket.socket) -> socket.socket:
    """Bound the kernel's buffers for `channel`, a stream between wraps.

    By default the kernel lets them grow to ten times that. With smaller buffers, 1 GB took longer
    (64 KiB at once, 2 cores).
    """
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        channel.setsockopt(socket.SOL_SOCKET, buffer, _KERNEL_BUFFER)
    return channel


def lost(what: str) -> TaskError:
    """Return the error for a stream whose other end is gone for an unknown cause."""
    return TaskError(STREAM_LOST, what)

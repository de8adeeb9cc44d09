"""How a stream is sent over a socket: in frames.

A frame is a length, and so many bytes. The length 0 ends the stream. After the highest length comes
the error of a writer that has failed. If the socket ends without either, the writer was lost.
"""

from __future__ import annotations

import socket
import struct

from wrap.core.errors import TaskError
from wrap.core.recovery import STREAM_LOST

#: Bytes that a file buffers, and that are read and written at once.
BUFFER = 1 << 16
LENGTH = struct.Struct("!I")
END, FAILED = 0, (1 << 32) - 1
#: How often a thread that waits looks whether it was cancelled, in milliseconds.
LOOK_MS = 200
#: Half of what the kernel buffers of a stream on each of its sides.
_KERNEL_BUFFER = 448 << 10


def bounded(channel: socket.socket) -> socket.socket:
    """`channel`, a stream between wraps, with bounded buffers of the kernel.

    The kernel lets unbounded buffers grow to ten times that. With smaller buffers, 1 GB took longer
    (64 KiB at once, 2 cores).
    """
    for buffer in (socket.SO_SNDBUF, socket.SO_RCVBUF):
        channel.setsockopt(socket.SOL_SOCKET, buffer, _KERNEL_BUFFER)
    return channel


def lost(what: str) -> TaskError:
    """The error if the other end of a stream is gone, and the cause is not known here."""
    return TaskError(STREAM_LOST, what)

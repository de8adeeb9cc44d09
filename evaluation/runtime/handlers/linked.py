"""Makes a megabyte in 10 ms, or counts one, in a sandbox whose network sends 10 MB/s.

Small containers have such a bound; a process of this machine has none. As a stand-in, the handler
bounds the sockets of the process that imports it.
"""

import socket
import threading
import time

SIZE, BYTES_PER_S = 1_000_000, 10e6
#: Data up to this size is sent at once, and still counts.
_SMALL = 1 << 14
#: The longest idle time that a burst makes up for, and the pause of a sender, in seconds.
_BURST_S, _PAUSE_S = 0.05, 0.002
_MADE = "x" * SIZE
_send = socket.socket.send


class _Link:
    """The bytes that may be sent now: a token bucket."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._room, self._since = 0.0, time.monotonic()

    def take(self, size: int) -> int:
        """Return how many of `size` bytes may be sent now, and subtract them."""
        with self._lock:
            now = time.monotonic()
            earned = BYTES_PER_S * (now - self._since)
            self._room = min(BYTES_PER_S * _BURST_S, self._room + earned)
            self._since = now
            taken = size if size <= _SMALL else min(size, max(0, int(self._room)))
            self._room -= taken
            return taken


_link = _Link()


def _bounded(channel: socket.socket, data: bytes, *flags: int) -> int:
    if channel.family != socket.AF_INET:
        return _send(channel, data, *flags)
    taken = _link.take(len(data))
    if not taken:
        time.sleep(_PAUSE_S)
        raise BlockingIOError
    return _send(channel, memoryview(data)[:taken], *flags)


socket.socket.send = _bounded  # type: ignore[method-assign,assignment]


def handle(req: str) -> str:
    """Return the size of a megabyte; for any other request, make a megabyte."""
    if len(req) == SIZE:
        return str(SIZE)
    time.sleep(0.01)
    return _MADE

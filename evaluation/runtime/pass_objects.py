"""A program that passes objects to processes as a wrap does; it imports the template's modules.

For every line on stdin it passes one object of each size, in a frame and in shared memory. It
prints the times in milliseconds as JSON. The time to write shared memory is separate.
"""

from __future__ import annotations

import json
import os
import socket
import sys
import time
from collections.abc import Iterator, Sequence

from wrap.net import framing
from wrap.values.shared_memory import Shared
from wrap.values.value import Object


def main(consumers: int, sizes: Sequence[int]) -> None:
    """Serve until stdin ends."""
    channels = [_consumer() for _ in range(consumers)]
    contents = [b"x" * size for size in sizes]
    for _ in sys.stdin:
        found = {}
        for content in contents:
            name = str(len(content))
            found[f"{name}.frame"] = _passed_ms(channels[:1], content)
            begun = time.perf_counter()
            shared = Shared.of(content)
            found[f"{name}.write"] = (time.perf_counter() - begun) * 1000
            for count in (1, consumers):
                found[f"{name}.shared.{count}"] = _passed_ms(channels[:count], shared)
        print(json.dumps(found), flush=True)


def _passed_ms(channels: Sequence[socket.socket], frame: bytes | Shared) -> float:
    """Return the milliseconds until every consumer has acknowledged the value."""
    begun = time.perf_counter()
    for channel in channels:
        framing.write(channel, [frame])
    for channel in channels:
        if not channel.recv(1):
            sys.exit("a consumer has ended")
    return (time.perf_counter() - begun) * 1000


def _consumer() -> socket.socket:
    ours, theirs = socket.socketpair()
    if os.fork() == 0:
        ours.close()
        _consume(theirs, framing.read(theirs))
        os._exit(0)
    theirs.close()
    return ours


def _consume(channel: socket.socket, incoming: Iterator[bytearray | Shared]) -> None:
    while (frame := next(incoming, None)) is not None and _ends_in(frame, b"x"):
        del frame
        channel.send(b"!")


def _ends_in(frame: bytearray | Shared, end: bytes) -> bool:
    return bool(Object(frame).data().endswith(end))


if __name__ == "__main__":
    main(int(sys.argv[1]), [int(size) for size in sys.argv[2:]])

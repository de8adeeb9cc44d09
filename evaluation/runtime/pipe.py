"""The yardstick for large data: copying it once, from one process to another, through a pipe."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import IO, cast

#: Reads as many bytes as its argument says into one buffer, says so, and begins again.
_READER = """
import os, sys
size = int(sys.argv[1])
while True:
    copy = memoryview(bytearray(size))
    filled = 0
    while filled < size:
        count = os.readv(0, [copy[filled:]])
        if not count:
            sys.exit()
        filled += count
    os.write(1, b"!")
"""


@contextmanager
def copying(data: bytes) -> Iterator[Callable[[], float]]:
    """A function that copies `data` to another process and says how many milliseconds it took."""
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER, str(len(data))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    into, said = cast(IO[bytes], reader.stdin), cast(IO[bytes], reader.stdout)

    def copy_ms() -> float:
        start = time.perf_counter()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(into.fileno(), rest) :]
        os.read(said.fileno(), 1)
        return (time.perf_counter() - start) * 1000

    with reader:
        try:
            yield copy_ms
        finally:
            into.close()

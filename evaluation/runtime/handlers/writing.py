"""Writes a stream: the time at which it began, then as many bytes as the request asks for."""

import struct
import time

CHUNK = bytes(1 << 16)
HEAD = struct.Struct("!d")


def handle(req: str) -> str:
    """Write `req` bytes; return nothing."""
    from chiron_io import open_output  # exists only in a wrap

    left = int(req)
    with open_output() as out:
        out.write(HEAD.pack(time.monotonic()))
        while left > 0:
            left -= out.write(CHUNK[:left] if left < len(CHUNK) else CHUNK)
    return ""

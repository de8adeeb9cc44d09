"""Writes a stream of as many bytes as the request says, behind the time at which it began."""

import struct
import time

CHUNK = bytes(1 << 16)
HEAD = struct.Struct("!d")


def handle(req: str) -> str:
    """Answer with nothing."""
    from chiron_io import open_output  # which is there in a wrap alone

    left = int(req)
    with open_output() as out:
        out.write(HEAD.pack(time.monotonic()))
        while left > 0:
            left -= out.write(CHUNK[:left] if left < len(CHUNK) else CHUNK)
    return ""

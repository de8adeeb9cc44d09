"""Reads the streams w0, w1, ... one after another, and says when that was, and how many bytes."""

import itertools
import json
import struct
import time

HEAD = struct.Struct("!d")


def handle(req: str) -> str:
    """Answer as JSON: the time when the first stream began and when all were read, and bytes."""
    from chiron_io import open_input  # which is there in a wrap alone

    begun, found, buffer = [], 0, bytearray(1 << 16)
    for number in itertools.count():
        try:
            stream = open_input(f"w{number}")
        except ValueError:
            break
        with stream:
            begun.append(HEAD.unpack(stream.read(HEAD.size))[0])
            while count := stream.readinto(buffer):
                found += count
    return json.dumps([min(begun), time.monotonic(), found])

"""Yields a sound as WAVE, second by second."""

import json
import math
import struct

RATE = 44100
#: One channel of 16 bits, of unknown length.
FORMAT = struct.pack("<4sIHHIIHH", b"fmt ", 16, 1, 1, RATE, 2 * RATE, 2, 16)
HEADER = b"RIFF\xff\xff\xff\xffWAVE" + FORMAT + b"data\xff\xff\xff\xff"


def handle(req):
    yield HEADER
    for second in range(json.loads(req)["seconds"]):
        step = 2 * math.pi * (220 + 20 * second) / RATE
        yield struct.pack(f"<{RATE}h", *(int(20000 * math.sin(step * n)) for n in range(RATE)))

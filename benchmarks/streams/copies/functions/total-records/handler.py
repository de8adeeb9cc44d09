"""Counts the bytes of a stream."""

import json

from chiron_io import open_input


def handle(req):
    total = 0
    with open_input() as records:
        while piece := records.read(1 << 16):
            total += len(piece)
    return json.dumps(total)

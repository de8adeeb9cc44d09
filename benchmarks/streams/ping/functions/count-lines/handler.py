"""Counts the lines and bytes of a stream."""

import json

from chiron_io import open_input


def handle(req):
    lines = size = 0
    with open_input() as found:
        for line in found:
            lines += 1
            size += len(line)
    return json.dumps({"lines": lines, "bytes": size})

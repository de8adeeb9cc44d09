"""Yields records, a megabyte at a time."""

import json


def handle(req):
    megabytes = json.loads(req)["megabytes"]
    piece = bytes(range(256)) * 3906
    for _ in range(megabytes):
        yield piece

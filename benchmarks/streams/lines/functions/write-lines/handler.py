"""Yields lines of a log; a third of the lines are errors."""

import json

LINES = (
    f"{n} {'info' if n % 3 else 'error'} of request {n * 7919 % 10007:>60}\n" for n in range(1000)
)
BLOCK = "".join(LINES).encode()


def handle(req):
    left = int(json.loads(req)["megabytes"] * 1_000_000)
    while left > 0:
        yield BLOCK[:left]
        left -= len(BLOCK)

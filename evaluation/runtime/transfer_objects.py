"""A program that writes objects to a store, or reads them, as a task would.

For every line on stdin, ``PUT BYTES URL`` or ``GET BYTES URL`` with a signed URL, it transfers the
object in pieces. It prints begin and end as JSON, in seconds of the monotonic clock.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator

import urllib3

_PIECE = bytes(1 << 16)


def main() -> None:
    """Serve until stdin ends."""
    connections = urllib3.PoolManager(retries=False)
    for line in sys.stdin:
        method, size, url = line.split()
        begun = time.monotonic()
        if method == "PUT":
            length = {"Content-Length": size}
            answer = connections.request(method, url, body=_pieces(int(size)), headers=length)
        else:
            answer = connections.request(method, url, preload_content=False)
            found = sum(map(len, answer.stream(len(_PIECE))))
            answer.release_conn()
            if found != int(size):
                sys.exit(f"{found} bytes have come of {size}")
        if answer.status != 200:
            sys.exit(f"the store answers {answer.status}")
        print(json.dumps([begun, time.monotonic()]), flush=True)


def _pieces(size: int) -> Iterator[bytes]:
    for _ in range(size // len(_PIECE)):
        yield _PIECE
    yield _PIECE[: size % len(_PIECE)]


if __name__ == "__main__":
    main()

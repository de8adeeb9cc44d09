"""Waits for 400 ms, as for another service."""

import time


def handle(req: str) -> str:
    """Return `req`."""
    time.sleep(0.4)
    return req

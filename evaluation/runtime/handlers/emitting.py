"""Emits an output, goes on and ends; tells when that was, or when it was begun by either."""

import json
import time

GOES_ON_S = 0.005


def handle(req: str) -> str:
    """Moments in seconds: when an output left, and, of what took it, when that began too."""
    from chiron_io import emit  # which is there in a wrap alone

    begun = time.monotonic()
    if req != "{}":
        return json.dumps([float(req), begun])
    emit("early", str(time.monotonic()))
    time.sleep(GOES_ON_S)
    return str(time.monotonic())

"""Emits an output, works on for 5 ms and returns; as a consumer, reports when it began."""

import json
import time

GOES_ON_S = 0.005


def handle(req: str) -> str:
    """Return the producer's end; as a consumer, its input and its own begin. All in seconds."""
    from chiron_io import emit  # exists only in a wrap

    begun = time.monotonic()
    if req != "{}":
        return json.dumps([float(req), begun])
    emit("early", str(time.monotonic()))
    time.sleep(GOES_ON_S)
    return str(time.monotonic())

"""Emits an output and goes on for a while; does nothing with what was emitted."""

import time

EMITTED = "emitted"
GOES_ON_S = 0.005


def handle(req: str) -> str:
    """Answer the request."""
    from chiron_io import emit  # which is there in a wrap alone

    if req != EMITTED:
        emit("early", EMITTED)
        time.sleep(GOES_ON_S)
    return req

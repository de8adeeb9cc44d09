"""Sleeps for 100 ms; with a probability of 1 % it kills its process meanwhile."""

import os
import random
import signal
import time

SLEEP_S, CRASHES = 0.1, 0.01


def handle(req: str) -> str:
    """Return `req`."""
    if random.random() < CRASHES:  # noqa: S311
        time.sleep(SLEEP_S * random.random())  # noqa: S311
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(SLEEP_S)
    return req

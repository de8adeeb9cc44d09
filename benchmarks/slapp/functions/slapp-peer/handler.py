"""The server at the other end of network-io: answers text after a moment. No task."""

import hashlib
import json
import os
import time


def handle(req: str) -> str:
    """Answer `{"key", "bytes"}` with that many bytes of text made from the key.

    Waits PEER_DELAY_MS (16) first. It stands for another machine, so nearly all of the time has to
    be this wait: what it computes, it computes on the cores of the functions that are measured.
    """
    time.sleep(float(os.environ.get("PEER_DELAY_MS", "16")) / 1000)
    request = json.loads(req)
    size: int = request["bytes"]
    line = hashlib.sha256(request["key"].encode()).hexdigest()
    return (line * (size // len(line) + 1))[:size]

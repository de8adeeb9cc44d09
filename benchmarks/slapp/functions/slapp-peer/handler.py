"""The server that network-io calls: returns text after a delay. Not a task."""

import hashlib
import json
import os
import time


def handle(req: str) -> str:
    """Return `bytes` bytes of text derived from the `key`, after PEER_DELAY_MS (default 16).

    The peer stands for another machine, so it must do little but wait: its computing uses the cores
    of the measured functions.
    """
    time.sleep(float(os.environ.get("PEER_DELAY_MS", "16")) / 1000)
    request = json.loads(req)
    size: int = request["bytes"]
    line = hashlib.sha256(request["key"].encode()).hexdigest()
    return (line * (size // len(line) + 1))[:size]

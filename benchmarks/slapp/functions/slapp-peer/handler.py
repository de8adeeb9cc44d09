"""The server at the other end of network-io: answers text after a moment. No task."""

import hashlib
import json
import os
import time


def handle(req: str) -> str:
    """Answer `{"key", "bytes"}` with that many bytes of text made from the key.

    Waits PEER_DELAY_MS (4) first, as a server in the same data centre would.
    """
    time.sleep(float(os.environ.get("PEER_DELAY_MS", "4")) / 1000)
    request = json.loads(req)
    size: int = request["bytes"]
    line = hashlib.sha256(request["key"].encode()).hexdigest()
    return (line * (size // len(line) + 1))[:size]

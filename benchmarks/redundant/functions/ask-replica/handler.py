"""A replica, which sleeps for the delay in the question."""

import json
import time
import zlib


def handle(req: str) -> str:
    """Return the number of documents with each word."""
    asked = json.loads(req)
    time.sleep(asked["delay_ms"] / 1000)
    return json.dumps({word: zlib.crc32(word.encode()) % 1000 for word in asked["words"]})

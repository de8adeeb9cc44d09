"""A replica, which takes as long as the question says."""

import json
import time
import zlib


def handle(req: str) -> str:
    """Answer in how many documents each word is."""
    asked = json.loads(req)
    time.sleep(asked["delay_ms"] / 1000)
    return json.dumps({word: zlib.crc32(word.encode()) % 1000 for word in asked["words"]})

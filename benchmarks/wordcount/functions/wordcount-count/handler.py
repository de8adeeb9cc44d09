"""Counts the words of one part of the text."""

import json
from collections import Counter


def handle(req: str) -> str:
    """Return the count of each word in the `file`."""
    return json.dumps({"counts": Counter(json.loads(req)["file"].split())})

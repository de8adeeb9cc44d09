"""Counts the words of one part of the text."""

import json
from collections import Counter


def handle(req: str) -> str:
    """Answer how often each word comes in the `file`."""
    return json.dumps({"counts": Counter(json.loads(req)["file"].split())})

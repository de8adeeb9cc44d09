"""Adds up what was counted in the parts."""

import json
from collections import Counter


def handle(req: str) -> str:
    """Answer how often each word comes in all parts, the most frequent words first."""
    total: Counter[str] = Counter()
    for counts in json.loads(req)["counts"]:
        total.update(counts)
    return json.dumps({"words": dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))})

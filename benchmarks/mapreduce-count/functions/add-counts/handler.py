"""Adds up the counts of a group of words."""

import json
from collections import Counter
from typing import Any


def reduced(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the count of each word over all parts."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part["counts"])
    return {"group": parts[0]["group"], "counts": dict(sorted(total.items()))}


def handle(req: str) -> str:
    """Return the sums."""
    return json.dumps(reduced(json.loads(req)))

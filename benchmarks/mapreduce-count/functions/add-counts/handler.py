"""Adds up the counts of a share of the words."""

import json
from collections import Counter
from typing import Any


def reduced(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return how often each of the words comes in all parts."""
    total: Counter[str] = Counter()
    for part in parts:
        total.update(part["counts"])
    return {"group": parts[0]["group"], "counts": dict(sorted(total.items()))}


def handle(req: str) -> str:
    """Answer the sums."""
    return json.dumps(reduced(json.loads(req)))

"""Adds up the counts of the parts."""

import json
from collections import Counter


def handle(req: str) -> str:
    """Return the count of each word in all parts, the most frequent words first.

    In a plain DAG the input is the list of the outputs for the parts.
    """
    given = json.loads(req)
    total: Counter[str] = Counter()
    found = [part["counts"] for part in given] if isinstance(given, list) else given["counts"]
    for counts in found:
        total.update(counts)
    return json.dumps({"words": dict(sorted(total.items(), key=lambda item: (-item[1], item[0])))})

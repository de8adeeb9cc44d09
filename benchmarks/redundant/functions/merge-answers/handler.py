"""Merges the answers of the replicas."""

import json
from typing import Any


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return the largest count of each word."""
    merged: dict[str, int] = {}
    for answer in json.loads(event.body):
        for word, count in answer.items():
            merged[word] = max(count, merged.get(word, 0))
    return {"statusCode": 200, "body": json.dumps(merged, sort_keys=True)}

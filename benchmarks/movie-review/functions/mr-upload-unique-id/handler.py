"""Makes an id for the review that sorts by time; only computes. A python3-http function."""

import json
from typing import Any

EPOCH_MS = 1_514_764_800_000  # 2018-01-01
RANDOM_BITS = 22


def unique_id(timestamp_ms: int, req_id: str) -> int:
    """Return the milliseconds since the epoch, followed by low bits of the request's id."""
    return (timestamp_ms - EPOCH_MS) << RANDOM_BITS | int(req_id, 16) % (1 << RANDOM_BITS)


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return the review's id, and the request's id and time."""
    request = json.loads(event.body)
    timestamp_ms = request["timestamp_ms"]
    return {
        "statusCode": 200,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps(
            {
                "review_id": unique_id(timestamp_ms, request["req_id"]),
                "req_id": request["req_id"],
                "timestamp_ms": timestamp_ms,
            }
        ),
    }

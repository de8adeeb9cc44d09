"""Assigns records to mappers."""

import json
from typing import Any

RECORD_BYTES = 100


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return, for each of the `parts`, its number of records and the number of `groups`."""
    asked = json.loads(event.body)
    records = round(asked["megabytes"] * 1e6 / RECORD_BYTES / asked["parts"])
    parts = [
        {"part": part, "records": records, "groups": asked["groups"]}
        for part in range(asked["parts"])
    ]
    return {"statusCode": 200, "body": json.dumps(parts)}

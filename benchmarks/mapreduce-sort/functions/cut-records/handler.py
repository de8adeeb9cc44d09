"""Says which records each mapper has."""

import json
from typing import Any

RECORD_BYTES = 100


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Answer for each of the `parts` how many records it has, for how many `groups`."""
    asked = json.loads(event.body)
    records = round(asked["megabytes"] * 1e6 / RECORD_BYTES / asked["parts"])
    parts = [
        {"part": part, "records": records, "groups": asked["groups"]}
        for part in range(asked["parts"])
    ]
    return {"statusCode": 200, "body": json.dumps(parts)}

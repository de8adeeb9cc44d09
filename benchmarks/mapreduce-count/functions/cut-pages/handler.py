"""Assigns pages of the text to mappers."""

import json
from typing import Any

PAGE_BYTES = 4500


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return, for each of the `parts`, its number of pages and the number of `groups`."""
    asked = json.loads(event.body)
    pages = max(1, round(asked["megabytes"] * 1e6 / PAGE_BYTES / asked["parts"]))
    parts = [
        {"part": part, "pages": pages, "groups": asked["groups"]} for part in range(asked["parts"])
    ]
    return {"statusCode": 200, "body": json.dumps(parts)}

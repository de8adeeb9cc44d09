"""Formats a value as a sentence."""

import json
from typing import Any


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return the sentence."""
    found = json.loads(event.body)
    text = f"Quantity {found['quantity']} at station {found['station']} is {found['value']}."
    return {"statusCode": 200, "body": json.dumps(text)}

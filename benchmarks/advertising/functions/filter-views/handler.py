"""Keeps only views, and of each view only the fields that later functions need."""

import json


def handle(req: str) -> str:
    """Return a view's number, advertisement and time; null for another event."""
    event = json.loads(req)
    if event["type"] != "view":
        return "null"
    return json.dumps({name: event[name] for name in ("event", "ad", "time")})

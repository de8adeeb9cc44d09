"""Keeps the views, and of each only what is needed from there on."""

import json


def handle(req: str) -> str:
    """Answer a view's number, advertisement and time; nothing for another event."""
    event = json.loads(req)
    if event["type"] != "view":
        return "null"
    return json.dumps({name: event[name] for name in ("event", "ad", "time")})

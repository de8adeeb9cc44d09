"""Sends the same question to all replicas."""

import json


def handle(req: str) -> str:
    """Return a question for each replica, with the replica's delay."""
    asked = json.loads(req)
    questions = [{"words": asked["words"], "delay_ms": ms} for ms in asked["delays_ms"]]
    return json.dumps(questions)

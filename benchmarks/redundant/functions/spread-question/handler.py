"""Asks all replicas the same."""

import json


def handle(req: str) -> str:
    """Answer a question for each replica, with how long it takes to answer."""
    asked = json.loads(req)
    questions = [{"words": asked["words"], "delay_ms": ms} for ms in asked["delays_ms"]]
    return json.dumps(questions)

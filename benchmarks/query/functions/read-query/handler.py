"""Parses a question."""

import json
import re

QUESTION = re.compile(r"quantity (\d+) at station (\d+)")


def handle(req: str) -> str:
    """Return the station and the quantity; raises ValueError if the question lacks them."""
    found = QUESTION.search(json.loads(req))
    if found is None:
        raise ValueError("a question names a quantity and a station")
    return json.dumps({"station": int(found[2]), "quantity": int(found[1])})

"""Accepts a request to review: checks its fields and adds an id derived from its content."""

import hashlib
import json

FIELDS = {"username": str, "title": str, "rating": int, "timestamp_ms": int, "text": str}
HIGHEST_RATING = 10
LONGEST_TEXT = 20_000


def handle(req: str) -> str:
    """Return the request with its `req_id`; raises ValueError for a wrong field."""
    request = json.loads(req)
    wrong = [field for field, kind in FIELDS.items() if type(request.get(field)) is not kind]
    if wrong:
        raise ValueError(f"missing or of another type: {', '.join(wrong)}")
    if not 0 <= request["rating"] <= HIGHEST_RATING:
        raise ValueError(f"rating is not between 0 and {HIGHEST_RATING}")
    if not 0 < len(request["text"]) <= LONGEST_TEXT:
        raise ValueError(f"text is empty or longer than {LONGEST_TEXT} characters")
    return json.dumps(request | {"req_id": hashlib.sha256(req.encode()).hexdigest()[:16]})

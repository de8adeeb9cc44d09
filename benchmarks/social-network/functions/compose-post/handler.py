"""Accepts a request to post: checks its fields and adds an id derived from its content."""

import hashlib
import json

FIELDS = {"username": str, "post_type": str, "timestamp_ms": int, "text": str, "media": list}
POST_TYPES = ("post", "repost", "reply", "dm")
LONGEST_TEXT = 20_000


def handle(req: str) -> str:
    """Return the request with its `req_id`; raises ValueError for a wrong field."""
    request = json.loads(req)
    wrong = [field for field, kind in FIELDS.items() if type(request.get(field)) is not kind]
    if wrong:
        raise ValueError(f"missing or of another type: {', '.join(wrong)}")
    if request["post_type"] not in POST_TYPES:
        raise ValueError(f"post_type is none of {', '.join(POST_TYPES)}")
    if not 0 < len(request["text"]) <= LONGEST_TEXT:
        raise ValueError(f"text is empty or longer than {LONGEST_TEXT} characters")
    return json.dumps(request | {"req_id": hashlib.sha256(req.encode()).hexdigest()[:16]})

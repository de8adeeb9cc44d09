"""Assembles the review from its parts; only computes."""

import hashlib
import json
from typing import Any

PARTS = {"movie_id", "rating", "req_id", "review_id", "text", "timestamp_ms", "user_id", "username"}


def compose(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the review; the parts may come in any order.

    Raises:
        ValueError: a part is missing.
    """
    review: dict[str, Any] = {}
    for part in parts:
        review |= part
    if missing := sorted(PARTS - set(review)):
        raise ValueError(f"the review lacks {', '.join(missing)}")
    return dict(sorted(review.items()))


def handle(req: str) -> str:
    """Return the review with a checksum, which the storing functions can verify."""
    review = compose(json.loads(req))
    checksum = hashlib.sha256(json.dumps(review).encode()).hexdigest()
    return json.dumps(review | {"checksum": checksum})

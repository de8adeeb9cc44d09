"""Assembles the post from its parts; only computes."""

import hashlib
import json
from typing import Any

PARTS = {"creator", "media", "post_id", "post_type", "req_id", "text", "timestamp_ms", "urls",
         "user_mentions"}  # fmt: skip


def compose(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the post; the parts may come in any order.

    Raises:
        ValueError: a part is missing.
    """
    post: dict[str, Any] = {}
    for part in parts:
        post |= part
    if missing := sorted(PARTS - set(post)):
        raise ValueError(f"the post lacks {', '.join(missing)}")
    return dict(sorted(post.items()))


def handle(req: str) -> str:
    """Return the post with a checksum, which the storing functions can verify."""
    post = compose(json.loads(req))
    checksum = hashlib.sha256(json.dumps(post).encode()).hexdigest()
    return json.dumps(post | {"checksum": checksum})

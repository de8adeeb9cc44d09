"""Adds the post to its creator's timeline and reads the first page of the timeline."""

import json

from .store import open_store, remember

STORE = open_store()
PREFIX = "social-network:"
PAGE = 10


def handle(req: str) -> str:
    """Return the first page: the new post, then older posts, a round trip each."""
    post = json.loads(req)
    user = post["creator"]["user_id"]
    index = f"{PREFIX}recent:user-timeline:{user}"
    remember(STORE, index, str(post["post_id"]), post["timestamp_ms"])
    page = [{"post_id": post["post_id"], "text": post["text"]}]
    for ident in STORE.lrange(f"{PREFIX}posts-of:{user}", 0, PAGE - 1):
        older = json.loads(STORE.get(f"{PREFIX}post:{ident}"))
        page.append({"post_id": older["post_id"], "text": older["text"]})
    return json.dumps({"user_id": user, "page": page})

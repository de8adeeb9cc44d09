"""Adds the post to the home timelines of all its readers, one round trip each."""

import json

from .store import open_store, remember

STORE = open_store()
PREFIX = "social-network:"


def handle(req: str) -> str:
    """Return the readers: the creator's followers and the mentioned users."""
    post = json.loads(req)
    followers = STORE.lrange(f"{PREFIX}followers:{post['creator']['user_id']}", 0, -1)
    mentioned = [user["user_id"] for user in post["user_mentions"]]
    readers = sorted({int(follower) for follower in followers} | set(mentioned))
    for reader in readers:
        index = f"{PREFIX}recent:home-timeline:{reader}"
        remember(STORE, index, str(post["post_id"]), post["timestamp_ms"])
    return json.dumps({"post_id": post["post_id"], "readers": readers})

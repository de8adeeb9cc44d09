"""Stores the post, its links, media and mentions, one round trip each, and reads it back."""

import hashlib
import json

from .store import EXPIRE_S, open_store, remember

STORE = open_store()
PREFIX = "social-network:recent:"


def handle(req: str) -> str:
    """Write post, links, media and mentions; return their numbers and a digest of the post."""
    post = json.loads(req)
    key = f"{PREFIX}post:{post['post_id']}"
    STORE.set(key, req, ex=EXPIRE_S)
    for url in post["urls"]:
        STORE.set(f"{PREFIX}url:{url['shortened']}", url["expanded"], ex=EXPIRE_S)
    for medium in post["media"]:
        STORE.set(f"{PREFIX}media:{medium['media_id']}", medium["path"], ex=EXPIRE_S)
    for user in post["user_mentions"]:
        index = f"{PREFIX}mentions-of:{user['user_id']}"
        remember(STORE, index, str(post["post_id"]), post["timestamp_ms"])
    while (stored := STORE.get(key)) is None:  # a restarted store is empty
        STORE.set(key, req, ex=EXPIRE_S)
    return json.dumps(
        {
            "post_id": post["post_id"],
            "stored": hashlib.sha256(stored.encode()).hexdigest(),
            "urls": len(post["urls"]),
            "media": len(post["media"]),
            "mentions": len(post["user_mentions"]),
        }
    )

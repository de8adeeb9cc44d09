"""Stores the review, adds it to each actor's list in turn, and reads it back."""

import hashlib
import json

from .store import EXPIRE_S, open_store, remember

STORE = open_store()
PREFIX = "movie-review:"


def handle(req: str) -> str:
    """Return the actors whose lists now have the review, and a digest of the stored review."""
    review = json.loads(req)
    key = f"{PREFIX}recent:review:{review['review_id']}"
    STORE.set(key, req, ex=EXPIRE_S)
    actors = [int(actor) for actor in STORE.lrange(f"{PREFIX}cast:{review['movie_id']}", 0, -1)]
    for actor in actors:
        index = f"{PREFIX}recent:actor-reviews:{actor}"
        remember(STORE, index, str(review["review_id"]), review["timestamp_ms"])
    while (stored := STORE.get(key)) is None:  # a restarted store is empty
        STORE.set(key, req, ex=EXPIRE_S)
    return json.dumps(
        {
            "review_id": review["review_id"],
            "stored": hashlib.sha256(stored.encode()).hexdigest(),
            "actors": actors,
        }
    )

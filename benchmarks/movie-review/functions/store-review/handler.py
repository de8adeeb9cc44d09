"""Stores the review, lists it with each actor of the movie, one by one, and reads it back."""

import hashlib
import json

from .store import EXPIRE_S, open_store, remember

STORE = open_store()
PREFIX = "movie-review:"


def handle(req: str) -> str:
    """Answer the actors whose lists have the review now, and what was read back."""
    review = json.loads(req)
    key = f"{PREFIX}recent:review:{review['review_id']}"
    STORE.set(key, req, ex=EXPIRE_S)
    actors = [int(actor) for actor in STORE.lrange(f"{PREFIX}cast:{review['movie_id']}", 0, -1)]
    for actor in actors:
        index = f"{PREFIX}recent:actor-reviews:{actor}"
        remember(STORE, index, str(review["review_id"]), review["timestamp_ms"])
    while (stored := STORE.get(key)) is None:  # a store that was replaced begins empty
        STORE.set(key, req, ex=EXPIRE_S)
    return json.dumps(
        {
            "review_id": review["review_id"],
            "stored": hashlib.sha256(stored.encode()).hexdigest(),
            "actors": actors,
        }
    )

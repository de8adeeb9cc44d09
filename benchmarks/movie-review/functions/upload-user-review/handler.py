"""Adds the review to its author's list and reads the first page of the list."""

import json

from .store import open_store, remember

STORE = open_store()
PREFIX = "movie-review:"
PAGE = 10


def handle(req: str) -> str:
    """Return the page: the new review, then the author's older reviews, a round trip each."""
    review = json.loads(req)
    user = review["user_id"]
    index = f"{PREFIX}recent:user-reviews:{user}"
    remember(STORE, index, str(review["review_id"]), review["timestamp_ms"])
    page = [{"review_id": review["review_id"], "text": review["text"]}]
    for ident in STORE.lrange(f"{PREFIX}reviews-of:user-{user}", 0, PAGE - 1):
        older = json.loads(STORE.get(f"{PREFIX}review:{ident}"))
        page.append({"review_id": older["review_id"], "text": older["text"]})
    return json.dumps({"user_id": user, "page": page})

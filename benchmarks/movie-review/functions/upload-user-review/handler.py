"""Lists the review with its author and reads the page that it stands on."""

import json

from .store import open_store, remember

STORE = open_store()
PREFIX = "movie-review:"
PAGE = 10


def handle(req: str) -> str:
    """Answer the page: the new review, then the author's older ones, a round trip each."""
    review = json.loads(req)
    user = review["user_id"]
    index = f"{PREFIX}recent:user-reviews:{user}"
    remember(STORE, index, str(review["review_id"]), review["timestamp_ms"])
    page = [{"review_id": review["review_id"], "text": review["text"]}]
    for ident in STORE.lrange(f"{PREFIX}reviews-of:user-{user}", 0, PAGE - 1):
        older = json.loads(STORE.get(f"{PREFIX}review:{ident}"))
        page.append({"review_id": older["review_id"], "text": older["text"]})
    return json.dumps({"user_id": user, "page": page})

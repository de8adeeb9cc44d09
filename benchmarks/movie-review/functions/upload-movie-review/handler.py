"""Adds the review to its movie's list and reads the latest reviews for the mean rating."""

import json

from .store import open_store, remember

STORE = open_store()
PREFIX = "movie-review:"
LATEST = 9


def handle(req: str) -> str:
    """Return the mean rating of the new and the latest older reviews, a round trip each."""
    review = json.loads(req)
    movie = review["movie_id"]
    index = f"{PREFIX}recent:movie-reviews:{movie}"
    remember(STORE, index, str(review["review_id"]), review["timestamp_ms"])
    ratings = [review["rating"]]
    for ident in STORE.lrange(f"{PREFIX}reviews-of:movie-{movie}", 0, LATEST - 1):
        ratings.append(json.loads(STORE.get(f"{PREFIX}review:{ident}"))["rating"])
    mean = round(sum(ratings) / len(ratings), 2)
    return json.dumps({"movie_id": movie, "reviews": len(ratings), "mean_rating": mean})

"""Finds the reviewed movie: one round trip."""

import json

from .store import open_store

STORE = open_store()


def handle(req: str) -> str:
    """Return the movie and its rating; raises ValueError for an unknown movie."""
    request = json.loads(req)
    ident = STORE.hget("movie-review:movie-ids", request["title"])
    if ident is None:
        raise ValueError(f"there is no movie {request['title']!r}")
    return json.dumps({"movie_id": int(ident), "rating": request["rating"]})

"""Finds the reviewer: first the id of the name, then the user; two round trips."""

import json

from .store import open_store

STORE = open_store()
PREFIX = "movie-review:"


def handle(req: str) -> str:
    """Return the user; raises ValueError for an unknown user."""
    name = json.loads(req)["username"]
    ident = STORE.hget(f"{PREFIX}user-ids", name)
    if ident is None:
        raise ValueError(f"there is no user {name!r}")
    user = STORE.hgetall(f"{PREFIX}user:{ident}")
    return json.dumps({"user_id": int(ident), "username": user["username"]})

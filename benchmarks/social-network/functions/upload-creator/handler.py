"""Finds the post's creator: one round trip."""

import json

from .store import open_store

STORE = open_store()


def handle(req: str) -> str:
    """Return the creator of the post; raises ValueError for an unknown user."""
    name = json.loads(req)["username"]
    user = STORE.hgetall(f"social-network:user:{name}")
    if not user:
        raise ValueError(f"there is no user {name!r}")
    return json.dumps(
        {
            "creator": {
                "user_id": int(user["user_id"]),
                "username": name,
                "first_name": user["first_name"],
            }
        }
    )

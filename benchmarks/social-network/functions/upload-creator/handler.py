"""Finds the user who posts: one round trip."""

import json

from .store import open_store

STORE = open_store()


def handle(req: str) -> str:
    """Answer the creator of the post; an unknown one fails."""
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

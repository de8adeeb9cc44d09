"""Finds the users that the text mentions: one round trip for all users."""

import json
import re

from .store import open_store

STORE = open_store()
MENTION = re.compile(r"(?<!\w)@(\w+)")


def handle(req: str) -> str:
    """Return the mentioned users, each once, in the order of the text, without unknown users."""
    names = list(dict.fromkeys(MENTION.findall(json.loads(req)["text"])))
    idents = STORE.hmget("social-network:ids", names) if names else []
    found = [
        {"user_id": int(ident), "username": name}
        for name, ident in zip(names, idents, strict=True)
        if ident
    ]
    return json.dumps({"user_mentions": found})

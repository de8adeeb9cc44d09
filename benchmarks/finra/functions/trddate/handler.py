"""Checks the dates (FIX tags 75 and 64, TradeDate and SettlDate) of every trade."""

import json
from datetime import date
from typing import Any

from .util import add_business_days, is_business_day, parse_date, settlement_days


def fault(trade: dict[str, Any], as_of: date) -> str | None:
    """Return the first rule that the trade's dates break on the day `as_of`, or None."""
    traded, settled = parse_date(trade["TradeDate"]), parse_date(trade["SettlDate"])
    if traded is None or settled is None:
        return "not-a-date"
    if traded > as_of:
        return "in-the-future"
    if not is_business_day(traded):
        return "market-closed"
    if settled != add_business_days(traded, settlement_days(traded)):
        return "wrong-settlement"
    return None


def handle(req: str) -> str:
    """Return `{trade: rule}` of the portfolio's trades that break a rule, as `faults`."""
    request = json.loads(req)
    as_of = date.fromisoformat(request["as_of"])
    found = {trade["ExecID"]: fault(trade, as_of) for trade in request["trades"]}
    faults = {key: rule for key, rule in found.items() if rule}
    return json.dumps({"check": "trddate", "faults": faults})

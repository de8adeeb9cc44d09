"""Checks the side (FIX tag 54) of every trade, and other fields as the side requires."""

import json
import re
from typing import Any

BUY, SELL, SELL_SHORT, SELL_SHORT_EXEMPT, CROSS = "1", "2", "5", "6", "8"
LOCATE_ID = re.compile(r"L-[A-Z]{4}-[0-9]{6}")
PARTY_ID = re.compile(r"[A-Z]{4}")


def fault(trade: dict[str, Any]) -> str | None:
    """Return the first rule that the trade's side breaks, or None.

    A short sale names the source of the borrowed shares (Regulation SHO's locate). An exempt short
    sale and every other trade do not. A cross has two different parties.
    """
    side, locate = trade["Side"], trade.get("LocateID")
    parties = trade["Parties"]
    if side not in (BUY, SELL, SELL_SHORT, SELL_SHORT_EXEMPT, CROSS):
        return "unknown-side"
    if side == SELL_SHORT and not (locate and LOCATE_ID.fullmatch(locate)):
        return "no-locate"
    if side != SELL_SHORT and locate:
        return "needless-locate"
    if not all(PARTY_ID.fullmatch(party) for party in parties):
        return "unknown-party"
    if side == CROSS and len(set(parties)) != 2:
        return "one-sided-cross"
    return None


def handle(req: str) -> str:
    """Return `{trade: rule}` of the portfolio's trades that break a rule, as `faults`."""
    found = {trade["ExecID"]: fault(trade) for trade in json.loads(req)["trades"]}
    faults = {key: rule for key, rule in found.items() if rule}
    return json.dumps({"check": "side", "faults": faults})

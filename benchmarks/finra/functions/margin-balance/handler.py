"""Combines the checks' results and checks the margin of the position of the accepted trades.

Margins follow FINRA Rule 4210 (c): 25 % of the long value and 30 % of the short value.
"""

import json
from collections import defaultdict
from typing import Any

LONG_PERCENT, SHORT_PERCENT = 25, 30


def merge_faults(results: list[dict[str, Any]]) -> dict[str, dict[str, str]]:
    """Return `{check: {trade: rule}}`; in a larger finra several tasks run the same check."""
    merged: dict[str, dict[str, str]] = defaultdict(dict)
    for result in results:
        merged[result["check"]].update(result["faults"])
    return merged


def position(moves: dict[str, list[Any]], rejected: set[str]) -> dict[str, int]:
    """Return the net shares per symbol that the accepted trades leave."""
    shares: dict[str, int] = defaultdict(int)
    for trade, (symbol, moved) in moves.items():
        if trade not in rejected:
            shares[symbol] += moved
    return shares


def handle(req: str) -> str:
    """Return the verdict on the portfolio from the list of the checks' results; money in cents."""
    results = json.loads(req)
    market = next(result for result in results if result["check"] == "marketdata")
    faults = merge_faults(results)
    rejected = set().union(*faults.values())
    quotes = market["quotes_cents"]
    values = [
        shares * quotes[symbol] for symbol, shares in position(market["moves"], rejected).items()
    ]
    long, short = sum(v for v in values if v > 0), -sum(v for v in values if v < 0)
    equity = market["cash_cents"] + long - short
    required = (LONG_PERCENT * long + SHORT_PERCENT * short + 99) // 100
    return json.dumps(
        {
            "trades": len(market["moves"]),
            "rejected": sorted(rejected),
            "faults": {check: len(trades) for check, trades in sorted(faults.items())},
            "long_cents": long,
            "short_cents": short,
            "equity_cents": equity,
            "required_cents": required,
            "margin_satisfied": equity >= required,
            "valid": not rejected and equity >= required,
        }
    )

"""The verdict of finra on portfolios small enough to check by hand, and on the one it ships."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

MARKET: dict[str, Any] = {
    "check": "marketdata",
    "faults": {},
    "cash_cents": -23_000,
    "quotes_cents": {"AAPL": 10_000, "MSFT": 20_000},
    "moves": {"T1": ["AAPL", 12], "T2": ["AAPL", 5], "T3": ["MSFT", -2], "T4": ["AAPL", -2]},
}
CHECKS: list[dict[str, Any]] = [
    {"check": "lastpx", "faults": {"T2": "sub-penny"}},
    {"check": "side", "faults": {}},
    {"check": "trddate", "faults": {"T2": "not-a-date"}},
    {"check": "volume", "faults": {}},
]


def verdict(benchmarks: Path, functions: SimpleNamespace, results: list[Any]) -> dict[str, Any]:
    """Return margin-balance's answer to the results of stage 1."""
    folder = benchmarks / "finra" / "functions" / "margin-balance"
    answer: dict[str, Any] = json.loads(functions.call(folder, json.dumps(results)))
    return answer


def test_margin_of_the_accepted_trades(benchmarks: Path, functions: SimpleNamespace) -> None:
    # T2 is rejected: 12 - 2 AAPL long = 1000.00, 2 MSFT short = 400.00; a quarter and 30 % of them.
    assert verdict(benchmarks, functions, [MARKET, *CHECKS]) == {
        "trades": 4,
        "rejected": ["T2"],
        "faults": {"lastpx": 1, "marketdata": 0, "side": 0, "trddate": 1, "volume": 0},
        "long_cents": 100_000,
        "short_cents": 40_000,
        "equity_cents": 37_000,
        "required_cents": 37_000,
        "margin_satisfied": True,
        "valid": False,
    }


def test_one_cent_less_does_not_satisfy_the_margin(
    benchmarks: Path, functions: SimpleNamespace
) -> None:
    poorer = MARKET | {"cash_cents": MARKET["cash_cents"] - 1}
    assert not verdict(benchmarks, functions, [poorer, *CHECKS])["margin_satisfied"]


@pytest.mark.usefixtures("services")
def test_shipped_portfolio_is_rejected_for_its_planted_faults_only(
    benchmarks: Path, functions: SimpleNamespace
) -> None:
    payload = (benchmarks / "finra" / "payload.json").read_text()
    found = json.loads(functions.run(benchmarks / "finra", payload))
    assert found["rejected"] == [f"T{number:05}" for number in range(50, 301, 50)]
    # Side, LastPx, TradeDate, LastQty, Side, LastPx
    assert found["faults"] == {"lastpx": 2, "marketdata": 0, "side": 2, "trddate": 1, "volume": 1}

"""The checks of finra accept a good trade and name the rule that a bad one breaks."""

import json
from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.rows import each_row

GOOD = {
    "ExecID": "T1",
    "Symbol": "AAPL",
    "Side": "1",
    "LastPx": "100.25",
    "LastQty": 300,
    "TradeDate": "20240618",
    "SettlDate": "20240620",
    "Parties": ["BKRA", "BKRB"],
}
REQUEST: dict[str, Any] = {
    "as_of": "2024-06-28",
    "account": {"cash_cents": 0},
    "securities": {
        "AAPL": {"previous_close": "100.00", "average_daily_volume": 1_000_000, "round_lot": 100},
        "PNNY": {"previous_close": "0.50", "average_daily_volume": 1_000_000, "round_lot": 100},
    },
}
BAD = [
    ("lastpx", {"LastPx": "a lot"}, "not-a-number"),
    ("lastpx", {"LastPx": None}, "not-a-number"),
    ("lastpx", {"LastPx": "NaN"}, "not-positive"),
    ("lastpx", {"LastPx": "-1.00"}, "not-positive"),
    ("lastpx", {"LastPx": "100.255"}, "sub-penny"),
    ("lastpx", {"LastPx": "105.01"}, "outside-band"),
    ("lastpx", {"Symbol": "PNNY", "LastPx": "0.6501"}, "outside-band"),
    ("side", {"Side": "9"}, "unknown-side"),
    ("side", {"Side": "5"}, "no-locate"),
    ("side", {"Side": "2", "LocateID": "L-AAPL-000001"}, "needless-locate"),
    ("side", {"Parties": ["BKRA", "nobody"]}, "unknown-party"),
    ("side", {"Side": "8", "Parties": ["BKRA", "BKRA"]}, "one-sided-cross"),
    ("trddate", {"TradeDate": "20240231"}, "not-a-date"),
    ("trddate", {"TradeDate": "20240701", "SettlDate": "20240702"}, "in-the-future"),
    ("trddate", {"TradeDate": "20240619", "SettlDate": "20240620"}, "market-closed"),
    ("trddate", {"SettlDate": "20240619"}, "wrong-settlement"),
    ("trddate", {"TradeDate": "20240524", "SettlDate": "20240528"}, "wrong-settlement"),
    ("volume", {"LastQty": "300"}, "not-a-whole-number"),
    ("volume", {"LastQty": True}, "not-a-whole-number"),
    ("volume", {"LastQty": 0}, "not-positive"),
    ("volume", {"LastQty": 1_000_100}, "too-large"),
    ("volume", {"LastQty": 10_100}, "moves-the-market"),
    ("volume", {"LastQty": 250}, "mixed-lot"),
]
ALLOWED = [
    ("lastpx", {"LastPx": "105.00"}),
    ("lastpx", {"Symbol": "PNNY", "LastPx": "0.6499"}),
    ("side", {"Side": "5", "LocateID": "L-AAPL-000001"}),
    ("side", {"Side": "8"}),
    ("trddate", {"TradeDate": "20240524", "SettlDate": "20240529"}),
    ("volume", {"LastQty": 99}),
    ("volume", {"LastQty": 10_000}),
]
HOLIDAYS = {
    2022: "0117 0221 0415 0530 0620 0704 0905 1124 1226",
    2024: "0101 0115 0219 0329 0527 0619 0704 0902 1128 1225",
}


@pytest.fixture
def finra(benchmarks: Path) -> Path:
    """The folder of finra's functions."""
    return benchmarks / "finra" / "functions"


@each_row(("check", "change", "rule"), BAD)
def test_bad_trade_is_named_with_its_rule(
    check: str, change: dict[str, Any], rule: str, finra: Path, functions: SimpleNamespace
) -> None:
    request = REQUEST | {"trades": [GOOD, GOOD | change | {"ExecID": "T2"}]}
    answer = json.loads(functions.call(finra / check, json.dumps(request)))
    assert answer == {"check": check, "faults": {"T2": rule}}


@each_row(("check", "change"), ALLOWED)
def test_trade_at_the_edge_of_a_rule_is_accepted(
    check: str, change: dict[str, Any], finra: Path, functions: SimpleNamespace
) -> None:
    request = REQUEST | {"trades": [GOOD | change]}
    assert json.loads(functions.call(finra / check, json.dumps(request)))["faults"] == {}


@each_row("year", HOLIDAYS)
def test_weekday_holidays_are_those_the_exchange_published(
    year: int, finra: Path, functions: SimpleNamespace
) -> None:
    calendar = functions.load(finra / "trddate", "util")
    published = {date.fromisoformat(f"{year}{day}") for day in HOLIDAYS[year].split()}
    assert {day for day in calendar.holidays(year) if day.weekday() < 5} == published


@pytest.mark.usefixtures("services")
def test_marketdata_signs_the_shares_by_side(finra: Path, functions: SimpleNamespace) -> None:
    changes = [{"Side": side} for side in "12568"] + [{"LastQty": "many"}, {"Side": "9"}]
    trades = [GOOD | change | {"ExecID": f"T{i}"} for i, change in enumerate(changes)]
    text = functions.call(finra / "marketdata", json.dumps(REQUEST | {"trades": trades}))
    moves = json.loads(text)["moves"]
    assert [moves[f"T{i}"][1] for i in range(7)] == [300, -300, -300, -300, 0, 0, 0]

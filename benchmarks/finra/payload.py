"""Generates the request of the workflow: a portfolio of trades, some of them faulty.

An equal number of trades always gives the same portfolio.
"""

from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from random import Random
from typing import Any

HERE = Path(__file__).parent
AS_OF = "2024-06-28"
# Trade and settlement dates around Juneteenth and the weekends of June 2024.
DATES = [("20240617", "20240618"), ("20240618", "20240620"), ("20240620", "20240621"),
         ("20240621", "20240624"), ("20240624", "20240625"), ("20240627", "20240628")]  # fmt: skip
SYMBOLS = ["AAPL", "ABBV", "AMZN", "AVGO", "BRKB", "COST", "CVXX", "GOOG", "HDXX", "JNJX", "JPMX",
           "LLYX", "MAXX", "META", "MRKX", "MSFT", "NVDA", "ORCL", "PEPX", "PGXX", "TSLA", "UNHX",
           "VXXX", "XOMX"]  # fmt: skip
FAULTS: list[dict[str, Any]] = [
    {"Side": "9"},
    {"LastPx": "12.345"},
    {"TradeDate": "20240619"},
    {"LastQty": 0},
]
FAULT_EVERY = 50
TRADES = {"test": 50, "small": 300, "large": 3000}


def quotes() -> dict[str, int]:
    """Return the quotes of the market data service, in cents."""
    path = HERE / "functions" / "finra-quotes" / "handler.py"
    spec = spec_from_file_location("finra_quotes", path)
    if spec is None or spec.loader is None:
        raise FileNotFoundError(path)
    service = module_from_spec(spec)
    spec.loader.exec_module(service)
    return {symbol: service.quote(symbol) for symbol in SYMBOLS}


def dollars(cents: int) -> str:
    """Return an amount as the decimal text that FIX messages carry."""
    return f"{cents // 100}.{cents % 100:02}"


def trade(number: int, closes: dict[str, int], random: Random) -> dict[str, Any]:
    """Return one trade that passes every check."""
    symbol = random.choice(SYMBOLS)
    side = random.choices("1258", weights=[60, 25, 10, 5])[0]
    traded, settled = random.choice(DATES)
    found = {
        "ExecID": f"T{number:05}",
        "Symbol": symbol,
        "Side": side,
        "LastPx": dollars(closes[symbol] * random.randrange(960, 1041) // 1000),
        "LastQty": random.choice([random.randrange(1, 100), 100 * random.randrange(1, 30)]),
        "TradeDate": traded,
        "SettlDate": settled,
        "Parties": random.choice([["BKRA", "BKRB"], ["BKRB", "BKRC"], ["BKRC", "BKRA"]]),
    }
    return found | ({"LocateID": f"L-{symbol}-{number:06}"} if side == "5" else {})


def portfolio(trades: int) -> dict[str, Any]:
    """Return a request with that many trades, every 50th of them with a fault."""
    random = Random(trades)  # noqa: S311 - a data set that can be made again, not a secret
    prices = quotes()
    closes = {name: cents * random.randrange(985, 1016) // 1000 for name, cents in prices.items()}
    made = [trade(number, closes, random) for number in range(1, trades + 1)]
    for index, faulty in enumerate(made[FAULT_EVERY - 1 :: FAULT_EVERY]):
        faulty.update(FAULTS[index % len(FAULTS)])
    return {
        "as_of": AS_OF,
        "account": {"cash_cents": 250_000_00},
        "securities": {
            symbol: {
                "previous_close": dollars(closes[symbol]),
                "average_daily_volume": random.randrange(1_000_000, 50_000_000),
                "round_lot": 100,
            }
            for symbol in SYMBOLS
        },
        "trades": made,
    }


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    return portfolio(TRADES[size])

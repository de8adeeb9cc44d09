"""Generates the request of the workflow: events of advertisements.

An equal number of events always gives the same events.
"""

from random import Random
from typing import Any

ADS, BEGIN_MS = 1000, 1_700_000_000_000
EVENTS = {"test": 30, "small": 300, "large": 3000}


def event(number: int) -> dict[str, Any]:
    """Return the event of that number."""
    random = Random(number)  # noqa: S311 - a data set that can be made again, not a secret
    return {
        "event": number,
        "time": BEGIN_MS + number,
        "type": random.choice(["view", "click", "purchase"]),
        "ad": f"ad-{random.randrange(ADS):04}",
        "ad_type": random.choice(["banner", "modal", "sponsored-search", "mail", "mobile"]),
        "user": f"{random.getrandbits(64):016x}",
        "page": f"{random.getrandbits(64):016x}",
        "address": f"10.{random.randrange(256)}.{random.randrange(256)}.{random.randrange(256)}",
    }


def payload(size: str) -> list[dict[str, Any]]:
    """Return the request of that size: test, small or large."""
    return [event(number) for number in range(EVENTS[size])]

"""Reads seconds and timestamps in a state's fields."""

from __future__ import annotations

from typing import Any

from .errors import StatesError
from .values import instant, number_of, shown
from .visits import MOST_SECONDS, Visit


def seconds_of(value: Any, visit: Visit, least: int, unfit: str) -> float:
    """Return whole seconds from `least` on. Raises StatesError with the name `unfit`."""
    seconds = number_of(value)
    if seconds is None or not least <= seconds <= MOST_SECONDS or seconds != int(seconds):
        message = (
            f"state {visit.name!a} has {shown(value)} seconds: "
            f"no whole number from {least} to {MOST_SECONDS}"
        )
        raise StatesError(unfit, message)
    return float(seconds)


def moment_of(text: Any, visit: Visit, unfit: str) -> float:
    """Return a timestamp in seconds since 1970. Raises StatesError with the name `unfit`."""
    moment = instant(text)
    if moment is None:
        message = f"state {visit.name!a} has {shown(text)} where a timestamp has to be"
        raise StatesError(unfit, message)
    return float(moment)

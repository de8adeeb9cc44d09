"""Durations and rates as people write them, and durations in OpenFaaS's notation."""

from __future__ import annotations

import re

from chiron.workflow.errors import ChironError

_MS_PER_UNIT = {"us": 0.001, "ms": 1.0, "s": 1000.0, "m": 60_000.0}
_HOUR_MS = 3_600_000.0
_DURATION = re.compile(r"\s*([-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?)\s*([a-zA-Zµ]*)\s*", re.ASCII)
#: The longest duration, in seconds: above 24.8 days sockets and polls raise OverflowError.
LONGEST_S = 20 * 24 * 3600.0
#: The highest rate, in requests per second.
MOST_PER_S = 1e6
_GO_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|us|h|m|s)", re.ASCII)


def parse_duration_ms(text: str, what: str = "duration") -> float:
    """Parse a positive duration such as ``200ms``, ``1.5s`` or ``800us`` to milliseconds.

    Raises ``bad-duration`` if the unit is missing or unknown, or if the duration is not positive or
    above `LONGEST_S`.

    >>> parse_duration_ms("1.5s")
    1500.0
    """
    match = _DURATION.fullmatch(text)
    unit = match[2] if match else ""
    if match is None or unit not in _MS_PER_UNIT:
        known = ", ".join(_MS_PER_UNIT)
        raise ChironError(
            "bad-duration", f"{what} {text[:40]!r} needs a number and a unit of {known}: 200ms"
        )
    value_ms = float(match[1]) * _MS_PER_UNIT[unit]
    if not 0 < value_ms <= LONGEST_S * 1000:
        bounds = f"greater than 0 and at most {LONGEST_S:.0f}s"
        raise ChironError("bad-duration", f"{what} {text[:40]!r} has to be {bounds}: 200ms")
    return value_ms


def parse_rate_per_s(text: str, what: str = "rate") -> float:
    """Parse a positive rate such as ``50/s``, ``0.5/s`` or ``600/m`` to requests per second.

    Raises ``bad-rate`` if the unit is missing or unknown, or the rate not positive or above a
    million.

    >>> parse_rate_per_s("600/m")
    10.0
    """
    number, _, unit = text.strip().partition("/")
    known = {"s": 1.0, "m": 60.0, "h": 3600.0}
    try:
        per_s = float(number) / known[unit.strip()]
    except (ValueError, KeyError):
        per_s = 0.0
    if not 0 < per_s <= MOST_PER_S:
        bounds = f"greater than 0, at most {MOST_PER_S:.0f}/s, with a unit of /s, /m or /h"
        raise ChironError("bad-rate", f"{what} {text[:40]!r} has to be {bounds}: 50/s")
    return per_s


def parse_timeout_s(text: str | None) -> float | None:
    """Parse an optional timeout to seconds. Raises as `parse_duration_ms` does."""
    return None if text is None else parse_duration_ms(text, "timeout") / 1000


def go_duration_s(text: str) -> float | None:
    """Parse a duration of OpenFaaS (``90s``, ``1m30s``, ``60``) to seconds; None if invalid or 0.

    A duration above `LONGEST_S` counts as `LONGEST_S`.

    >>> go_duration_s("1m30s")
    90.0
    """
    if text.isdecimal():
        return min(float(text), LONGEST_S) or None
    parts = _GO_PART.findall(text)
    if "".join(number + unit for number, unit in parts) != text:
        return None
    whole_ms = sum(float(number) * _MS_PER_UNIT.get(unit, _HOUR_MS) for number, unit in parts)
    return min(whole_ms / 1000, LONGEST_S) or None

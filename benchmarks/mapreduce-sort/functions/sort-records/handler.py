"""Sorts the records of a part, and cuts them into ranges of keys."""

import json
from bisect import bisect_left
from itertools import pairwise
from random import Random
from typing import Any

DIGITS = 99
#: Number of values of a key's first four digits, which select its range.
KEYS = 16**4


def made(part: int, records: int) -> list[str]:
    """Return the records of a part; each is a string of hexadecimal digits."""
    random = Random(part)  # noqa: S311 - a data set that can be made again, not a secret
    digits = random.randbytes((records * DIGITS + 1) // 2).hex()
    return [digits[at : at + DIGITS] for at in range(0, records * DIGITS, DIGITS)]


def mapped(asked: dict[str, Any]) -> list[dict[str, Any]]:
    """Return for each of the `groups` its sorted `records`, separated by blanks."""
    records, groups = sorted(made(asked["part"], asked["records"])), asked["groups"]
    begins = [bisect_left(records, f"{KEYS * group // groups:04x}") for group in range(groups)]
    return [
        {"group": f"{group:04}", "records": " ".join(records[begin:end])}
        for group, (begin, end) in enumerate(pairwise([*begins, len(records)]))
    ]


def handle(req: str) -> str:
    """Emit the ranges into the reducers' bucket."""
    from chiron_io import emit

    for part in mapped(json.loads(req)):
        emit("shuffled", json.dumps(part), group=part["group"])
    return ""

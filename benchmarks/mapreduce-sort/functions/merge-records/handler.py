"""Merges the sorted records of a range."""

import json
from itertools import chain
from typing import Any
from zlib import crc32


def reduced(parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return a summary of the range to check.

    It has the number of records, the first and the last, and a checksum that ignores the order.
    """
    records = sorted(chain.from_iterable(part["records"].split() for part in parts))
    found: dict[str, Any] = {"group": parts[0]["group"], "records": len(records)}
    found["sum"] = sum(map(crc32, map(str.encode, records)))
    return found | ({"first": records[0], "last": records[-1]} if records else {})


def handle(req: str) -> str:
    """Return the summary of the range."""
    return json.dumps(reduced(json.loads(req)))

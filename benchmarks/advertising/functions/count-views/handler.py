"""Counts the views of a window by campaign."""

import json
import os
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

#: The file for results, a line each, instead of a store; None discards results.
FILE = os.environ.get("VIEWS_FILE")


def ranges(numbers: Iterable[int]) -> list[list[int]]:
    """Return first and last of each run of consecutive numbers; a repeat begins a new run."""
    found: list[list[int]] = []
    for number in sorted(numbers):
        if found and number == found[-1][1] + 1:
            found[-1][1] = number
        else:
            found.append([number, number])
    return found


def handle(event: Any, context: Any) -> dict[str, Any]:
    """Return the views by campaign, the numbers of the events, and the time of the newest."""
    views = json.loads(event.body)
    result = {
        "campaigns": dict(sorted(Counter(view["campaign"] for view in views).items())),
        "events": ranges(view["event"] for view in views),
        "newest": max(view["time"] for view in views),
    }
    if FILE:
        line = json.dumps(result | {"at": time.time()}) + "\n"
        descriptor = os.open(FILE, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        os.write(descriptor, line.encode())
        os.close(descriptor)
    return {"statusCode": 200, "body": json.dumps(result)}

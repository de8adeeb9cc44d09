"""Distributed Maps: how items are batched, and how many of them may fail.

References
----------
AWS Step Functions Developer Guide, "Using Map state in Distributed mode": "ItemBatcher" and
"Setting failure thresholds for Distributed Map states"; its fields, "Label".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from math import inf
from typing import NamedTuple

#: Items, or batches, of a distributed Map that run at once if MaxConcurrency allows more.
MOST_CHILDREN = 1_000
#: The error of a Map of which more items failed than it tolerates.
EXCEEDED = "States.ExceedToleratedFailureThreshold"
#: Most characters of a label, and those that it cannot have.
LONGEST_LABEL = 40
_NOT_IN_LABEL = re.compile(r"[\s?*<>{}\[\]:;,\\|^~$#%&`\"\x00-\x1f\x7f-\x9f]")


class Tolerance(NamedTuple):
    """How many items may fail, and how many percent of them; infinite if only the other is set."""

    items: float
    percentage: float

    def is_exceeded(self, failed: int, total: int) -> bool:
        """Whether a Map of `total` items fails as `failed` of them have."""
        return failed > self.items or 100 * failed > self.percentage * total


def tolerance(count: float | None, percentage: float | None) -> Tolerance:
    """What a Map tolerates whose fields are these; nothing without either."""
    if count is None and percentage is None:
        return Tolerance(0, 0)
    return Tolerance(inf if count is None else count, inf if percentage is None else percentage)


def is_label(text: str) -> bool:
    """Whether a Map may have this Label."""
    return 0 < len(text) <= LONGEST_LABEL and not _NOT_IN_LABEL.search(text)


def label_of(state: str) -> str:
    """The label of a Map without one, from the name of its state."""
    return _NOT_IN_LABEL.sub("_", state)[:LONGEST_LABEL]


def batches(
    total: int, most_items: float, most_bytes: float, size_of: Callable[[int], int]
) -> list[range]:
    """The indices of the items of each batch.

    Args:
        most_items, most_bytes: of a batch; an item with more bytes is a batch of its own.
        size_of: the bytes that an item takes in a batch. Called only if `most_bytes` is finite.
    """
    if most_bytes == inf:
        step = int(min(most_items, max(total, 1)))
        return [range(start, min(start + step, total)) for start in range(0, total, step)]
    found, start, size = list[range](), 0, 0
    for index in range(total):
        own = size_of(index)
        if index > start and (index - start >= most_items or size + own > most_bytes):
            found.append(range(start, index))
            start, size = index, 0
        size += own
    return [*found, range(start, total)] if total else []

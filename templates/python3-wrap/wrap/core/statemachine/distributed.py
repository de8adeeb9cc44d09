"""Rules of distributed Maps: batches, tolerated failures, labels.

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

#: The limit of concurrent children of a distributed Map.
MOST_CHILDREN = 1_000
#: The error of a Map with more failed items than it tolerates.
EXCEEDED = "States.ExceedToleratedFailureThreshold"
#: The limit of a label in characters, and the characters that it cannot contain.
LONGEST_LABEL = 40
_NOT_IN_LABEL = re.compile(r"[\s?*<>{}\[\]:;,\\|^~$#%&`\"\x00-\x1f\x7f-\x9f]")


class Tolerance(NamedTuple):
    """The tolerated number and percentage of failed items; infinite if only the other is set."""

    items: float
    percentage: float

    def is_exceeded(self, failed: int, total: int) -> bool:
        """Return whether a Map of `total` items fails after `failed` failures."""
        return failed > self.items or 100 * failed > self.percentage * total


def is_label(text: str) -> bool:
    return 0 < len(text) <= LONGEST_LABEL and not _NOT_IN_LABEL.search(text)


def label_of(state: str) -> str:
    """Return the default label of a Map, from its state's name."""
    return _NOT_IN_LABEL.sub("_", state)[:LONGEST_LABEL]


def batches(
    total: int, most_items: float, most_bytes: float, size_of: Callable[[int], int]
) -> list[range]:
    """Yield the range of indices of each batch.

    Args:
        most_items, most_bytes: the limits of a batch; a larger item is a batch of its own.
        size_of: returns the bytes of an item. Called only if `most_bytes` is finite.
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

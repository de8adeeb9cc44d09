"""Which of the objects that wait in memory go to disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, TypeVar

#: The share of the quota that is left when it is exceeded, so that a file has many objects.
_LEFT = 0.75
#: The bytes that go into one file, if there are as many.
_FILE = 1 << 26


class Waiting(Protocol):
    """An object that waits for its consumers."""

    @property
    def size(self) -> int:
        """The size in bytes."""

    @property
    def since(self) -> float:
        """When it arrived, in seconds of a clock."""


Each = TypeVar("Each", bound=Waiting)


def due(
    waiting: Sequence[Each],
    now: float,
    ttl_s: float,
    quota: int,
    is_full: bool,
    is_waited_for: bool,
) -> list[Each]:
    """Return the objects that go to disk: old objects, then the largest ones above the quota.

    Args:
        waiting: in the order of arrival.
        ttl_s: the age in seconds from which an object is old.
        quota: the bytes that they may take in memory.
        is_full: whether they take more.
        is_waited_for: whether others wait for memory. Otherwise the newest object stays, as its
            consumer may come at once.
    """
    found = [each for each in waiting if each.since + ttl_s <= now]
    others = list(waiting[len(found) :]) if is_full else []
    if others and not is_waited_for:
        others.pop()
    left = sum(each.size for each in others)
    if left > quota:
        for each in sorted(others, key=lambda each: -each.size):
            if left <= quota * _LEFT:
                break
            found.append(each)
            left -= each.size
    return found


def first_file(due: Sequence[Each]) -> list[Each]:
    """Return the first of the objects, as many as go into one file."""
    sizes = accumulate(each.size for each in due)
    whole = next((count for count, size in enumerate(sizes, 1) if size >= _FILE), len(due))
    return list(due[:whole])


def has_room(taken: int, size: int, free: int) -> bool:
    """Return whether `size` more bytes may go to disk: half of what is free without ours."""
    return 2 * (taken + size) <= taken + free

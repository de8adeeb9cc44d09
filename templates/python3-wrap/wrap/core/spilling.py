"""Which of the objects that wait in memory go to disk."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from typing import Protocol, TypeVar

#: Where the quota is exceeded so much of it is left, so that a file has many objects.
_LEFT = 0.75
#: So many bytes go into one file, if there are as many.
_FILE = 1 << 26


class Waiting(Protocol):
    """An object that waits for its consumers."""

    @property
    def size(self) -> int:
        """Its bytes."""

    @property
    def since(self) -> float:
        """When it came, in seconds of a clock."""


Each = TypeVar("Each", bound=Waiting)


def due(
    waiting: Sequence[Each],
    now: float,
    ttl_s: float,
    quota: int,
    is_full: bool,
    is_waited_for: bool,
) -> list[Each]:
    """The objects that go to disk: the old ones, and of the others the largest above the quota.

    Args:
        waiting: in the order in which they came.
        ttl_s: after so many seconds an object is old.
        quota: bytes that they may take in memory.
        is_full: whether they take more.
        is_waited_for: whether others wait for room. Else the newest stays, as its consumer may come
            at once.
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
    """The first of them, as many as go into one file."""
    sizes = accumulate(each.size for each in due)
    whole = next((count for count, size in enumerate(sizes, 1) if size >= _FILE), len(due))
    return list(due[:whole])


def has_room(taken: int, size: int, free: int) -> bool:
    """Whether `size` bytes may go to disk: ours take half of what is free without them."""
    return 2 * (taken + size) <= taken + free

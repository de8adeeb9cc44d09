"""Which variants stand side by side: all of them, unless the gateway holds too few functions."""

from __future__ import annotations

from collections.abc import Mapping

from scheduler.limits import COMMUNITY_EDITION_FUNCTIONS

#: Providers under the Community Edition's limits.
_LIMITED = frozenset({"faasd", "faasd-ce", "faas-netes-ce"})


def function_limit(provider: str) -> int | None:
    """How many functions the gateway of `provider` holds; None for any number."""
    return COMMUNITY_EDITION_FUNCTIONS if provider in _LIMITED else None


def groups(functions: Mapping[str, int], room: int | None) -> list[list[str]]:
    """The labels of `functions`, in groups that need no more than `room` functions each.

    Variants of one group are measured in turn, so few groups are better. A variant that needs
    more than there is room is a group of its own: the gateway may say what it thinks of that.

    Examples
    --------
    >>> groups({"a": 6, "b": 6, "c": 6, "d": 1}, 13)
    [['a', 'b', 'd'], ['c']]
    """
    if room is None:
        return [list(functions)]
    made: list[list[str]] = []
    for label, needed in functions.items():
        for group in made:
            if sum(functions[each] for each in group) + needed <= room:
                group.append(label)
                break
        else:
            made.append([label])
    return made

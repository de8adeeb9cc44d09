"""Stops evaluations that exceed the time limit or the text limit.

A path over a value of some kilobytes can take minutes. So all code that visits the parts of values
calls `look` for each part, which calls the machine's `check` of the time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Check = Callable[[], None]


def unlimited() -> None:
    """Check nothing."""


_check: ContextVar[Check] = ContextVar("check", default=unlimited)
#: The default limit of a text that functions build, in characters.
LONGEST = 1 << 26
_longest: ContextVar[float] = ContextVar("longest", default=LONGEST)


class Limited:
    """Limits a block: `check` raises to stop it; texts have at most `longest` characters."""

    __slots__ = ("_check", "_longest", "_tokens")

    def __init__(self, check: Check, longest: float = LONGEST) -> None:
        self._check = check
        self._longest = longest

    def __enter__(self) -> None:
        self._tokens = _check.set(self._check), _longest.set(self._longest)

    def __exit__(self, *_: object) -> None:
        checking, bounding = self._tokens
        _check.reset(checking)
        _longest.reset(bounding)


def look() -> None:
    """Raise if the current evaluation must stop."""
    _check.get()()


def longest() -> float:
    """Return the text limit in characters."""
    return _longest.get()

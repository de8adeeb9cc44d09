"""Ends an evaluation that takes too long, or would make too long a text.

A value of some kilobytes can keep a path busy for minutes. So whatever visits the parts of values
calls `look` for each part, which calls what the machine was given to look at the time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar

Check = Callable[[], None]


def unlimited() -> None:
    """Let the evaluation go on."""


_check: ContextVar[Check] = ContextVar("check", default=unlimited)
#: Characters of a text that is made of values, if who runs the machine gives no other bound.
LONGEST = 1 << 26
_longest: ContextVar[float] = ContextVar("longest", default=LONGEST)


class Limited:
    """Blocks that evaluate while `check` raises nothing, texts of up to `longest` only."""

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
    """Raise what ends the evaluation, if it has to end."""
    _check.get()()


def longest() -> float:
    """The characters that a text may have which is made of values."""
    return _longest.get()

"""Ends an evaluation that takes too long.

A value of some kilobytes can keep a path busy for minutes. So whatever visits the parts of values
calls `look` for each part, which calls what the machine was given to look at the time.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar, Token

Check = Callable[[], None]


def unlimited() -> None:
    """Let the evaluation go on."""


_check: ContextVar[Check] = ContextVar("check", default=unlimited)


class Limited:
    """A block, again and again, in which evaluations go on as long as `check` raises nothing."""

    __slots__ = ("_check", "_token")

    def __init__(self, check: Check) -> None:
        self._check = check

    def __enter__(self) -> None:
        self._token: Token[Check] = _check.set(self._check)

    def __exit__(self, *_: object) -> None:
        _check.reset(self._token)


def look() -> None:
    """Raise what ends the evaluation, if it has to end."""
    _check.get()()

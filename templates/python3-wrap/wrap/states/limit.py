"""Ends an evaluation that takes too long.

A value of some kilobytes can keep a path busy for minutes. So whatever visits the parts of values
calls `look` for each part, which calls what the machine was given to look at the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


def unlimited() -> None:
    """Let the evaluation go on."""


_look: ContextVar[Callable[[], None]] = ContextVar("look", default=unlimited)


@contextmanager
def limited(check: Callable[[], None]) -> Iterator[None]:
    """Evaluate in this block as long as `check` raises nothing."""
    token = _look.set(check)
    try:
        yield
    finally:
        _look.reset(token)


def look() -> None:
    """Raise what ends the evaluation, if it has to end."""
    _look.get()()

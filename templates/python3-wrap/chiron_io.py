"""For handlers: outputs that leave a function before it ends.

    from chiron_io import emit

    def handle(req):
        emit("preview", shrunk(req))
        return converted(req)

What takes `preview` begins when that is emitted, and not when the function has ended. To a function
that runs alone nothing is attached, and what it emits goes nowhere: to try it there, copy this file
beside the handler.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

#: Takes what is emitted, by its name.
Take = Callable[[str, Any], None]


def _nowhere(name: str, value: Any) -> None:
    """Nobody takes it."""


_take: ContextVar[Take] = ContextVar("take", default=_nowhere)


def emit(name: str, value: Any) -> None:
    """Send the output `name` now, and go on.

    To be called by the thread that `handle` runs in, or with its context (`contextvars`).

    Parameters
    ----------
    value
        What `handle` could return; it must not be changed any more.

    Raises ValueError if it was emitted before.
    """
    _take.get()(name, value)


@contextmanager
def taken_by(take: Take) -> Iterator[None]:
    """Have `take` called for what is emitted within the block."""
    before = _take.set(take)
    try:
        yield
    finally:
        _take.reset(before)

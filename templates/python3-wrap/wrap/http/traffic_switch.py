"""Which entry wrap answers requests: this one, or one of another version that it was told of.

A provider that ends a function before it starts it anew answers no request in between. There the
entry that clients call stays, and hands its requests on.
"""

from __future__ import annotations

import threading

from wrap.config.settings import ROUTE
from wrap.config.wrap_spec import is_name
from wrap.core.request_queue import served_at_once
from wrap.http import server


class Route:
    """The wrap that answers: empty for this one."""

    def __init__(self, target: str, threads: int) -> None:
        self._target = target
        self._own_threads = threads
        self._changing = threading.Lock()

    @property
    def target(self) -> str:
        """The name of another entry wrap; empty where this one answers."""
        return self._target

    @property
    def threads(self) -> int:
        """How many requests may be in hand at once."""
        return served_at_once(self._own_threads, forwards=bool(self._target))

    def change(self, target: str) -> None:
        """Have `target` answer from now on, also when the program begins anew; ValueError."""
        if target and not is_name(target):
            raise ValueError(f"{target!r} is no name of a function")
        with self._changing:
            self._target = target
            server.keep(ROUTE, target)

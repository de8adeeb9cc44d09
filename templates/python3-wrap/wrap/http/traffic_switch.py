"""Which entry wrap answers requests: this one, or an entry of another version.

Some providers end a function before they start it anew, and no request is answered in between. With
those, the entry that clients call stays and hands its requests on.
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
        """The name of another entry wrap; empty if this one answers."""
        return self._target

    @property
    def threads(self) -> int:
        """How many requests may be served at once."""
        return served_at_once(self._own_threads, forwards=bool(self._target))

    def change(self, target: str) -> None:
        """Make `target` answer from now on, even after a restart. Raises ValueError."""
        if target and not is_name(target):
            raise ValueError(f"{target!r} is no name of a function")
        with self._changing:
            self._target = target
            server.keep(ROUTE, target)

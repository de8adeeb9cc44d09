"""Which entry wrap answers requests: this one, or an entry of another version.

Some providers end a function before they start it anew, and no request is answered in between. With
those, the entry that clients call stays and hands its requests on.
"""

from __future__ import annotations

import threading

from wrap.config.settings import ROUTE
from wrap.core.wrap_spec import is_name
from wrap.http.server.program import keep

#: The minimum limit of requests that another wrap answers: their threads only wait for it.
_FORWARDED = 64


class Route:
    """The wrap that answers."""

    def __init__(self, target: str, threads: int) -> None:
        #: The name of another entry wrap; empty if this one answers.
        self.target = target
        self._own_threads = threads
        self._changing = threading.Lock()

    @property
    def threads(self) -> int:
        """How many requests may be served at once."""
        return max(self._own_threads, _FORWARDED) if self.target else self._own_threads

    def change(self, target: str) -> None:
        """Make `target` answer from now on, even after a restart. Raises ValueError."""
        if target and not is_name(target):
            raise ValueError(f"{target!r} is no name of a function")
        with self._changing:
            self.target = target
            keep(ROUTE, target)

"""Mechanism ``interpreters``: kept sub-interpreters of the server, each with a GIL of its own."""

from __future__ import annotations

import math
import sys
from collections.abc import Collection, Mapping

from wrap.workers.mechanisms.mechanism import Starter
from wrap.workers.mechanisms.pool import Pool

#: The first version of CPython with GILs of their own for interpreters that threads can run.
_SINCE = (3, 13)


class Interpreters(Pool):
    """Workers that are threads of the server. None is replaced for its age: a start takes long."""

    name = "interpreters"
    in_server = True

    def __init__(
        self, slots: int, environment: Mapping[str, str], unforked: Collection[int]
    ) -> None:
        if sys.version_info < _SINCE:
            needed, here = (".".join(map(str, each[:2])) for each in (_SINCE, sys.version_info))
            raise ValueError(
                f"mechanism {self.name} needs Python {needed} or later, and this is {here}"
            )
        super().__init__(slots, environment, unforked)
        self._requests = math.inf

    def start(self, starter: Starter) -> None:
        """Get workers from `starter` from now on, and wait for one of each slot.

        Raises ImportError if one cannot import its functions.
        """
        super().start(starter)
        for workers in self._workers:
            workers.await_ready()

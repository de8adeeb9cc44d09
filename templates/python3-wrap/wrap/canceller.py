"""Ends runs that have been given up once their time has come, all with one thread."""

from __future__ import annotations

import heapq
import threading
import time
from itertools import count

from wrap.threads import Run


class Canceller:
    """Cancels each run at its time; its thread is there only while one is left."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, Run]] = []
        self._numbers = count()
        self._thread: threading.Thread | None = None

    def cancel_at(self, run: Run, when: float) -> None:
        """Cancel `run` at `when`, in seconds of the monotonic clock, unless it has ended then."""
        with self._changed:
            heapq.heappush(self._due, (when, next(self._numbers), run))
            if self._thread is None:
                thread = threading.Thread(target=self._serve, name="canceller", daemon=True)
                thread.start()
                self._thread = thread
            else:
                self._changed.notify()

    def _serve(self) -> None:
        with self._changed:
            while self._due:
                when, _, run = self._due[0]
                patience = when - time.monotonic()
                if run.ended or patience <= 0:
                    heapq.heappop(self._due)
                    run.cancel()
                else:
                    self._changed.wait(patience)
            self._thread = None

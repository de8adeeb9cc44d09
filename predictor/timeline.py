"""What a thread did when: the spans that a simulation records and a drawing needs."""

from __future__ import annotations

from typing import NamedTuple


class Span(NamedTuple):
    """A stretch of time that one thread of one process spent on one thing.

    ``thread`` is the thread's place in its process, -1 for the one that starts the others;
    ``kind`` is ``cpu``, ``native``, ``block`` or ``wait-gil``. Waiting for a core shows as a
    longer ``cpu`` or ``native`` span.
    """

    process: int
    thread: int
    kind: str
    start_ms: float
    end_ms: float

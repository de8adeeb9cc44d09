"""Events of Chrome's tracing format, of which predicted and measured timelines are made.

References
----------
"Trace Event Format", Google.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

#: What the format calls events: complete ones with a duration, counters, and names of rows.
COMPLETE, COUNTER, METADATA = "X", "C", "M"
#: The row of the workflow itself; processes are numbered from 1.
WORKFLOW = 0

Event = dict[str, Any]


def document(events: Sequence[Event]) -> dict[str, Any]:
    """What Perfetto and chrome://tracing open."""
    return {"displayTimeUnit": "ms", "traceEvents": list(events)}


def complete(name: str, category: str, pid: int, row: int, begin_ms: float, end_ms: float) -> Event:
    """Something that lasts from `begin_ms` to `end_ms`, in row `row` of process `pid`."""
    return {
        "name": name,
        "cat": category,
        "ph": COMPLETE,
        "pid": pid,
        "tid": row,
        "ts": microseconds(begin_ms),
        "dur": round(microseconds(end_ms) - microseconds(begin_ms), 3),
    }


def name(what: str, pid: int, row: int, text: str) -> Event:
    """What a row (``thread_name``) or a process (``process_name``) is called."""
    return {"name": what, "ph": METADATA, "pid": pid, "tid": row, "args": {"name": text}}


def process_name(pid: int, wrap: str, process: int) -> Event:
    """The name of a wrap's process."""
    role = "main process" if process == 0 else f"process {process}"
    return name("process_name", pid, 0, f"{wrap}, {role}")


def microseconds(milliseconds: float) -> float:
    """The format's unit, to the nanosecond."""
    return round(milliseconds * 1000, 3)

"""How a client has wraps tell what ran when, and what they tell: the rows of a timeline."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Sequence
from typing import Any, NotRequired, TypedDict

_HEADER = "X-Chiron-Trace"
#: The variable in which a wrap has the key, which those of one build share.
KEY_VARIABLE = "chiron_trace_key"
#: The annotation in which a client with the gateway's credentials finds it: not every provider
#: tells a function's variables.
KEY_ANNOTATION = "chiron.trace-key"


def new_key() -> str:
    """The key of a new build."""
    return secrets.token_hex(16)


def trace_header(key: str, more: str = "") -> dict[str, str]:
    """The header of a traced request; `more` may be ``probe`` or ``cpu-speed``."""
    return {_HEADER: f"{key} {more}".rstrip()}


class Row(TypedDict):
    """What one process did for a task, or how it was started; the template writes it.

    ``kind`` is ``run`` for a task's handler, ``emit`` for an ``output`` that one gave before its
    end, and maybe wrote for so long, else what starting a process is called by its mechanism; only
    the first has a task. Times are in milliseconds since the wrap had the request. ``delayed_ms``
    is for how long the handler's thread had no core, ``cpu_ms`` its process's CPU time,
    ``processes_mib`` the most memory that a process which it started has had. ``writes_ms`` is when
    it began to write what it answers, piece by piece, and ``reads_ms`` from when to when it read
    streams that had been written. ``ticks`` are those of the probe of the GIL (see
    `profiler.probe_run.read_ticks`), and ``cpu_probe_ms`` what the CPU-speed probe took before and
    after, where they were asked for.
    """

    wrap: str
    process: int
    task: int | None
    function: str | None
    kind: str
    start_ms: float
    end_ms: float
    output: NotRequired[str]
    delayed_ms: NotRequired[float]
    cpu_ms: NotRequired[float]
    processes_mib: NotRequired[float]
    writes_ms: NotRequired[float]
    reads_ms: NotRequired[list[float]]
    ticks: NotRequired[list[Sequence[Any]]]
    cpu_probe_ms: NotRequired[list[float]]


class Traced(TypedDict):
    """The answer to a traced request."""

    output: str
    timeline: list[Row]


def runs(rows: Iterable[Row]) -> list[Row]:
    """The rows of tasks, without those of processes' starts."""
    return [row for row in rows if row["kind"] == "run"]


def emissions(rows: Iterable[Row]) -> list[Row]:
    """The rows of outputs that tasks gave before their ends."""
    return [row for row in rows if row["kind"] == "emit"]


def run_ms(row: Row) -> float:
    """How long `row` took."""
    return row["end_ms"] - row["start_ms"]

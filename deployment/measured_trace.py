"""A request's measured timeline in the format of the predicted one, to lay them side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from predictor.trace_events import WORKFLOW, Event, complete, document, name, process_name
from workflow.tracing import Row, emissions, runs


def measured_trace(rows: Sequence[Row], latency_ms: float) -> dict[str, Any]:
    """The request, and per process what started it and when its handlers ran.

    Times count from the arrival at the entry wrap; the request's row is as long as it took the
    client, so that what is left at its end is the way there and back.
    """
    pids: dict[tuple[str, int], int] = {}
    for row in rows:
        pids.setdefault((row["wrap"], row["process"]), len(pids) + 1)
    events = [name("process_name", WORKFLOW, 0, "workflow")]
    events.append(complete("request", "stage", WORKFLOW, 0, 0.0, latency_ms))
    events += [process_name(pid, *key) for key, pid in pids.items()]
    for key, pid in pids.items():
        events += _process([row for row in rows if (row["wrap"], row["process"]) == key], pid)
    return document(events)


def _process(rows: Sequence[Row], pid: int) -> Iterator[Event]:
    """Its start in row 0, and each task in a row of its own, with what it emits."""
    yield name("thread_name", pid, 0, "starter")
    for row in rows:
        if row["kind"] not in ("run", "emit"):
            yield complete("starting up", "startup", pid, 0, row["start_ms"], row["end_ms"])
    emitted = emissions(rows)
    for number, row in enumerate(runs(rows), start=1):
        yield complete(str(row["function"]), "task", pid, number, row["start_ms"], row["end_ms"])
        for each in [each for each in emitted if _emits(row, each)]:
            emitted.remove(each)  # another task of the function may run at the same time
            yield complete(each["output"], "emit", pid, number, each["start_ms"], each["end_ms"])


def _emits(row: Row, emitted: Row) -> bool:
    """Whether a run may have emitted that."""
    is_within = row["start_ms"] <= emitted["start_ms"] <= row["end_ms"]
    return is_within and row["function"] == emitted["function"]

"""What ran when, as a list that can be laid beside the predictor's."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from wrap.messages import Result


def timeline(results: Iterable[Result], arrived: float, kind: str) -> list[dict[str, Any]]:
    """Rows of wrap, process, task, function, kind, start_ms and end_ms, by start.

    What a task emits is a row with the ``output``'s name, of no length unless it was written as a
    file. Rows of tasks that were traced have ``delayed_ms``, ``cpu_ms`` and ``processes_mib``,
    ``ticks`` where they were probed, and ``cpu_probe_ms`` where it was asked for; ``writes_ms``
    and ``reads_ms`` are as `wrap.messages.Result` has them.

    Parameters
    ----------
    arrived
        When the request came, in seconds of the monotonic clock: 0 ms.
    kind
        How the start of a further process is called, by its mechanism.
    """
    rows: dict[tuple[object, ...], dict[str, Any]] = {}
    for result in results:
        place = {"wrap": result.wrap, "process": result.process}
        if result.asked is not None and result.ready is not None:
            start = {"task": None, "function": None, "kind": kind}
            times = _times(result.asked, result.ready, arrived)
            rows[result.wrap, result.process, result.asked] = place | start | times
        if result.emitted is not None:
            emits = {"function": result.function, "kind": "emit", "output": result.emitted}
            at = _times(result.started, result.ended, arrived)
            rows[(result.task,)] = place | {"task": None} | emits | at
            continue
        run = {"task": result.task, "function": result.function, "kind": "run"}
        row = place | run | _times(result.started, result.ended, arrived)
        if result.delayed is not None:
            row["delayed_ms"] = round(result.delayed * 1000, 4)
        if result.cpu is not None:
            row["cpu_ms"] = round(result.cpu * 1000, 4)
        if result.processes_mib is not None:
            row["processes_mib"] = result.processes_mib
        if result.ticks is not None:
            row["ticks"] = result.ticks
        if result.cpu_probe is not None:
            row["cpu_probe_ms"] = [round(took_s * 1000, 4) for took_s in result.cpu_probe]
        if result.writes is not None:
            row["writes_ms"] = _since(arrived, result.writes)
        if result.reads is not None:
            row["reads_ms"] = [_since(arrived, each) for each in result.reads]
        rows[result.number, result.task] = row
    return sorted(rows.values(), key=lambda row: float(row["start_ms"]))


def _times(start: float, end: float, arrived: float) -> dict[str, float]:
    return {"start_ms": _since(arrived, start), "end_ms": _since(arrived, end)}


def _since(arrived: float, when: float) -> float:
    return round((when - arrived) * 1000, 4)

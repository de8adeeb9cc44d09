"""A measured timeline is drawn as a predicted one is: transfers, processes, starts, tasks."""

from __future__ import annotations

import pytest

from chiron.workflow.chrome_trace import chrome_trace
from chiron.workflow.timeline import Span, Timeline


def span(kind, start_ms, end_ms, wrap, process=None, task=None, **more):
    return Span(
        kind=kind, start_ms=start_ms, end_ms=end_ms, wrap=wrap, process=process, task=task, **more
    )


SPANS = (
    span("start", 0.5, 2.5, "w1", 1),
    span("task", 1.0, 4.0, "w1", 0, "a"),
    span("emit", 2.0, 2.25, "w1", 0, "a", output="early"),
    span("task", 2.5, 5.0, "w1", 1, "b"),
    span("transfer", 4.0, 6.0, "w2", task="c"),
    span("transfer", 5.0, 6.0, "w2", task="d"),
    span("task", 6.0, 7.25, "w2", 0, "c", wait_core_ms=0.5),
)


@pytest.fixture
def events():
    timeline = Timeline(workflow="demo", source="measured", latency_ms=9.0, spans=SPANS)
    return chrome_trace(timeline)["traceEvents"]


def test_every_process_has_a_name(events):
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert named == dict(
        enumerate(["demo", "w1, main process", "w1, process 2", "w2, main process"])
    )


def test_spans_have_their_times_in_microseconds(events):
    drawn = {(e["cat"], e["name"]): (e["ts"], e["dur"]) for e in events if e["ph"] == "X"}
    assert drawn == {
        ("request", "request"): (0.0, 9000.0),
        ("start", "being started"): (500.0, 2000.0),
        ("task", "a"): (1000.0, 3000.0),
        ("emit", "early"): (2000.0, 250.0),
        ("task", "b"): (2500.0, 2500.0),
        ("transfer", "to w2 for c"): (4000.0, 2000.0),
        ("transfer", "to w2 for d"): (5000.0, 1000.0),
        ("task", "c"): (6000.0, 1250.0),
    }
    (waited,) = [e["args"] for e in events if e["ph"] == "X" and "args" in e]
    assert waited == {"waiting for a core, ms": 0.5}


def test_what_overlaps_has_rows_of_its_own(events):
    rows = {e["name"]: e["tid"] for e in events if e.get("cat") == "transfer"}
    assert len(set(rows.values())) == 2
    emitted, giver = (next(e for e in events if e["name"] == each) for each in ("early", "a"))
    assert (emitted["pid"], emitted["tid"]) == (giver["pid"], giver["tid"])

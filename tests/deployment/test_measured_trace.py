"""A measured timeline is drawn as the predicted one is: processes, their starts, their tasks."""

from __future__ import annotations

import pytest

from deployment.measured_trace import measured_trace

ROWS = [
    {"wrap": "w1", "process": 1, "task": None, "function": None, "kind": "fork"}
    | {"start_ms": 0.5, "end_ms": 2.5},
    {"wrap": "w1", "process": 0, "task": 0, "function": "a", "kind": "run"}
    | {"start_ms": 1.0, "end_ms": 4.0},
    {"wrap": "w1", "process": 0, "task": None, "function": "a", "kind": "emit", "output": "early"}
    | {"start_ms": 2.0, "end_ms": 2.25},
    {"wrap": "w1", "process": 1, "task": 1, "function": "b", "kind": "run"}
    | {"start_ms": 2.5, "end_ms": 5.0},
    {"wrap": "w2", "process": 0, "task": 2, "function": "c", "kind": "run"}
    | {"start_ms": 6.0, "end_ms": 7.25},
]


@pytest.fixture
def events():
    return measured_trace(ROWS, 9.0)["traceEvents"]


def test_every_process_is_named_as_in_a_prediction(events):
    named = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(named) == [0, 1, 2, 3]
    assert set(named.values()) == {
        *("workflow", "w1, process 1", "w1, main process", "w2, main process")
    }


def test_tasks_and_starts_have_their_times_in_microseconds(events):
    drawn = {(e["cat"], e["name"]): (e["ts"], e["dur"]) for e in events if e["ph"] == "X"}
    assert drawn == {
        ("stage", "request"): (0.0, 9000.0),
        ("startup", "starting up"): (500.0, 2000.0),
        ("task", "a"): (1000.0, 3000.0),
        ("emit", "early"): (2000.0, 250.0),
        ("task", "b"): (2500.0, 2500.0),
        ("task", "c"): (6000.0, 1250.0),
    }

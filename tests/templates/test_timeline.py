"""What a wrap tells of a request: when its tasks ran, and what was on its way meanwhile."""

from __future__ import annotations

import pytest
from wrap.core.wrap_spec import Entry, Wrap
from wrap.net.messages import Result
from wrap.observe.timeline import timeline

from chiron.workflow.timeline import Timeline

#: a here and b far away begin with the request, and c, here, waits for both.
WRAP = Wrap(
    workflow="demo",
    name="here",
    mechanism="fork",
    functions={"a": "http", "c": "http"},
    tasks={0: "a", 2: "c"},
    processes=[[0, 2]],
    inputs={0: None, 1: None, 2: [0, 1]},
    buckets=[([], [0, 1]), ([0, 1], [2])],
    timeout_s=60.0,
    entry=Entry(output=2),
    remotes={"there": {1: "b"}},
)


def ran(task, wrap, started, ended, **more):
    return Result(1, task, "abc"[task], wrap, 0, started, ended, **more)


@pytest.mark.parametrize(
    ("b_ends", "on_their_way"),
    [
        (5.0, [("there", "b", 0, 1000), ("here", "c", 5000, 6000)]),
        (2.0, [("there", "b", 0, 1000)]),  # what b gave was there before a ended
    ],
)
def test_what_a_task_waits_for_last_is_on_its_way(b_ends, on_their_way):
    results = [
        ran(0, "here", 10.5, 13.0),
        ran(1, "there", 11.0, 10.0 + b_ends),
        ran(2, "here", 16.0, 17.0),
    ]
    found = Timeline.model_validate(timeline(WRAP, results, 10.0, 18.0), strict=False)
    ways = found.of_kind("transfer")
    assert [(w.wrap, w.task, w.start_ms, w.end_ms) for w in ways] == on_their_way
    assert found.latency_ms == 8000
    assert [span.task for span in found.tasks] == ["a", "b", "c"]


def test_a_process_that_is_started_for_a_task_ends_its_way():
    results = [ran(1, "there", 13.0, 14.0, asked=11.0, ready=12.5)]
    found = timeline(WRAP, results, 10.0, 15.0)["spans"]
    assert [(span["kind"], span["start_ms"], span["end_ms"]) for span in found] == [
        ("transfer", 0.0, 1000.0),
        ("start", 1000.0, 2500.0),
        ("task", 3000.0, 4000.0),
    ]


def test_what_a_stream_gives_has_no_way():
    results = [ran(1, "there", 11.0, 14.0), ran(2, "here", 12.0, 15.0)]
    found = timeline(WRAP, results, 10.0, 16.0)["spans"]
    assert [span["task"] for span in found if span["kind"] == "transfer"] == ["b"]

"""Timelines as rows of bars: on one axis, where they belong, and what is off most."""

from __future__ import annotations

import pytest

from chiron.services.dashboard.gantt import drawn
from chiron.services.planning import PredictRequest
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError
from chiron.workflow.timeline import Span, Timeline


@pytest.fixture
def known(workflow, profile, platform):
    """A plan with a wrap for each of both tasks."""
    wraps = [
        {"name": f"w{n}", "cpus": 1, "memory_mib": 64, "mechanism": "fork", "processes": [[task]]}
        for n, task in enumerate(("First", "Second"), start=1)
    ]
    plan = {"format": 2, "workflow": "demo", "planner": "by-hand", "cpus": 2, "wraps": wraps}
    asked = {"workflow": workflow, "profile": profile, "platform": platform, "plan": plan}
    return validate(PredictRequest, asked, "the prediction")


def measured(*spans):
    found = Timeline(
        workflow="demo", source="measured", arrived_ms=1.0, latency_ms=20.0, spans=spans
    )
    return found.model_dump(mode="json", exclude_none=True)


def task(name, wrap, start_ms, end_ms):
    return Span(kind="task", start_ms=start_ms, end_ms=end_ms, wrap=wrap, process=0, task=name)


SEEN = measured(
    task("First", "w1", 2.0, 4.5),
    Span(kind="transfer", start_ms=4.5, end_ms=6.0, wrap="w2", task="Second"),
    task("Second", "w2", 6.0, 13.0),
)


def test_both_are_on_one_axis_from_when_the_first_wrap_has_the_request(known):
    found = drawn(known, SEEN)

    rows = {row["label"]: row["bars"] for row in found["rows"]}
    assert list(rows) == ["w1, main process", "First", "w2, main process", "Second"]
    assert [row["heading"] for row in found["rows"]] == [True, False, True, False]
    # The measured request ends last, 19 ms after it has arrived: the axis ends there.
    (bar,) = [bar for bar in rows["First"] if bar["source"] == "measured"]
    assert (bar["left"], bar["width"]) == pytest.approx((100 / 19, 250 / 19), abs=1e-3)
    kinds = [(bar["source"], bar["kind"]) for bar in rows["Second"]]
    assert kinds == [("predicted", "task"), ("measured", "transfer"), ("measured", "task")]
    assert found["differs"] is False
    assert found["latencies_ms"]["measured"] == 20.0
    for bars in rows.values():
        for bar in bars:
            assert bar["left"] >= 0
            assert bar["left"] + bar["width"] <= 100.01


def test_what_a_task_does_is_part_of_its_bar(known):
    found = drawn(known, None)
    assert found["kinds"] == ["cpu", "transfer"]
    rows = {row["label"]: row["bars"] for row in found["rows"]}
    (bar,) = rows["First"]
    assert {kind for kind, _, _ in bar["parts"]} == {"cpu"}
    assert (bar["parts"][0][1], bar["parts"][-1][2]) == (0.0, 100.0)
    assert "computes with the GIL: 2.01 ms" in bar["tooltip"]  # a switch costs 0.01


def test_the_task_that_is_off_most_comes_first(known):
    first, second = drawn(known, SEEN)["tasks"]
    assert (first["task"], first["off_ms"]) == ("Second", pytest.approx(4.99))
    assert (second["task"], second["off_ms"]) == ("First", pytest.approx(0.49))


def test_tasks_that_are_deployed_elsewhere_are_told(known):
    elsewhere = measured(task("First", "w1", 2.0, 4.5), task("Second", "w1", 6.0, 13.0))
    assert drawn(known, elsewhere)["differs"] is True


def test_marks_are_round_and_within_the_axis(known):
    marks = drawn(known, SEEN)["marks"]
    assert (0.0, "0") in marks
    assert all(0 <= left <= 100 for left, _ in marks)
    assert 20 < len(marks) <= 201


def test_what_is_no_timeline_is_refused():
    with pytest.raises(ChironError) as refused:
        drawn(None, {"format": 2})
    assert refused.value.code == "bad-document"

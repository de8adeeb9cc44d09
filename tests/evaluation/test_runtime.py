"""What the wrap runtime costs is measured on wraps that answer as the reference executor does."""

from __future__ import annotations

import socket
from unittest.mock import Mock

import pytest

from chiron.evaluation.runtime import reruns, rounds
from chiron.evaluation.runtime.costs import (
    PARTS,
    measure_runtime,
    noop_shapes,
    span_shapes,
    trigger_shapes,
)
from chiron.evaluation.runtime.data_passing import copying, large_shapes
from chiron.evaluation.runtime.handlers import large, spawning
from chiron.evaluation.runtime.pairs import await_byte
from chiron.evaluation.runtime.rounds import Figure, Quantity, interleaved, starts
from chiron.workflow.errors import ChironError
from tests.rows import each_row


@each_row(
    "shape",
    [
        *(*noop_shapes(), *trigger_shapes(), *large_shapes("result"), *large_shapes("input")),
        *span_shapes("told"),
    ],
    ids=lambda shape: shape.name,
)
def test_the_plans_run_every_task_of_their_workflows(shape):
    shape.plan.check_against(shape.workflow)


@pytest.mark.slow
@pytest.mark.parametrize(
    "part",
    # All parts are measured by the same code.
    [pytest.param(part, marks=pytest.mark.soak if n else ()) for n, part in enumerate(PARTS)],
    ids=lambda part: part.name,
)
def test_every_figure_is_found(part, launcher, monkeypatch):
    monkeypatch.setattr(rounds, "_WARM_UP", 1)
    told = []
    figures = measure_runtime(launcher, 2, told.append, [part])
    assert [figure.name for figure in figures] == [each.name for each in part.quantities]
    assert {figure.samples for figure in figures} == {2}
    assert launcher.gateway.functions() == []
    assert [line.split()[0] for line in told] == ["deploying", f"{part.name}:"]


def test_a_large_output_is_asked_for_made_and_taken_in():
    for name, size in {"large": 10_000_000, "small": 12}.items():
        made = large.handle(large.handle("?" + name))
        assert large.handle(made) == str(len(made)) == str(size)
    whole = large.handle("whole")
    assert large.handle(whole) == whole
    assert len(whole.encode()) == pytest.approx(10_000_000, abs=100)


def test_processes_of_multiprocessing_begin_after_they_were_asked_for():
    first, second = sorted(map(float, spawning.handle("2").strip("[]").split(",")))
    assert 0 < first < second


def test_data_is_copied_as_often_as_asked():
    with copying(b"x" * 1_000_000) as copy_ms:
        assert all(copy_ms() > 0 for _ in range(3))


def test_a_figure_is_the_median_of_differences_within_each_round():
    rounds = [{"a": 1.0, "b": 4.0}, {"a": 100.0, "b": 101.0}, {"a": 2.0, "b": 4.0}]
    figure = Quantity("b more than a", lambda r: r["b"] - r["a"]).figure(rounds)
    assert (figure.median, figure.low, figure.high, figure.samples) == (2.0, 1.5, 2.5, 3)


def test_a_figure_may_be_of_one_value():
    found = Figure.of("one", [4.0])
    assert (found.low, found.median, found.high, found.samples) == (4.0, 4.0, 4.0, 1)


def test_a_process_that_has_ended_acknowledges_nothing():
    ours, theirs = socket.socketpair()
    theirs.close()
    with ours, pytest.raises(ChironError, match="has ended"):
        await_byte(ours)


def test_a_request_that_always_fails_is_not_retried_for_ever():
    client = Mock()
    client.post.side_effect = ChironError("wrong-output", "status 502", status=502)
    with pytest.raises(ChironError, match="502"):
        reruns._latency_ms(client, reruns._WAYS[1])
    assert client.post.call_count == 10


def test_every_round_begins_with_another_measurement_and_the_first_rounds_do_not_count():
    ran = []

    def probe(name):
        def measure():
            ran.append(name)
            return {name: float(len(ran))}

        return measure

    rounds = interleaved([probe("a"), probe("b"), probe("c")], 2)
    assert [sorted(columns) for columns in rounds] == [["a", "b", "c"]] * 2
    assert {"".join(ran[i : i + 3]) for i in range(0, len(ran), 3)} == {"abc", "bca", "cab"}
    assert max(rounds[-1].values()) == len(ran)


def test_processes_start_one_after_the_other():
    assert starts([5.0, 2.0, 4.0], asked_ms=1.0) == (1.0, 1.5)
    assert starts([3.0]) == (3.0, 0.0)

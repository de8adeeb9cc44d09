"""What the wrap runtime costs is measured on wraps that answer as the reference executor does."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from chiron.evaluation.runtime import reruns, rounds
from chiron.evaluation.runtime.costs import (
    PARTS,
    measure_runtime,
)
from chiron.evaluation.runtime.rounds import Quantity, interleaved
from chiron.workflow.errors import ChironError


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


def test_a_figure_is_the_median_of_differences_within_each_round():
    rounds = [{"a": 1.0, "b": 4.0}, {"a": 100.0, "b": 101.0}, {"a": 2.0, "b": 4.0}]
    figure = Quantity("b more than a", lambda r: r["b"] - r["a"]).figure(rounds)
    assert (figure.median, figure.low, figure.high, figure.samples) == (2.0, 1.5, 2.5, 3)


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

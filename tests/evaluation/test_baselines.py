"""Baselines learn what can be learnt, never see what they are asked about, and say why not."""

from __future__ import annotations

import itertools
import statistics

import pytest

from chiron.evaluation import optional
from chiron.evaluation.prediction.baselines.features import (
    Sample,
    WrapShape,
    parts_of,
    sample_of,
)
from chiron.evaluation.prediction.baselines.learning import (
    Baseline,
    Candidate,
    available,
    compare_baselines,
    predict_held_out,
)
from chiron.scheduler.layout import plan_from_layout
from chiron.workflow.folder import parse_workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.profile import FunctionProfile, Period


def function(cpu_ms: float) -> FunctionProfile:
    """One that only computes."""
    period = Period(kind="cpu", start_ms=0.0, duration_ms=cpu_ms)
    return FunctionProfile(latency_ms=cpu_ms, periods=(period,))


def sample(workflow: str, cpu_ms: float, *threads: int) -> Sample:
    """A stage of equal functions: every process but the first costs 4 ms, every thread 1 ms."""
    processes = tuple((function(cpu_ms),) * count for count in threads)
    shape = WrapShape(cpus=len(threads), remote=False, processes=processes)
    measured_ms = cpu_ms + 4 * (len(threads) - 1) + sum(threads)
    return Sample(workflow, "fork", ((shape,),), measured_ms)


def learnable() -> list[Sample]:
    """Three workflows of unlike functions in the same divisions, where the delay is the same."""
    divisions = [
        threads
        for count in (1, 2, 3)
        for threads in itertools.combinations_with_replacement((1, 2, 3, 4), count)
    ]
    return [
        sample(name, cpu_ms, *threads)
        for name, cpu_ms in (("short", 10.0), ("middle", 20.0), ("long", 30.0))
        for threads in divisions
    ]


def test_the_parts_of_a_stage_are_the_wraps_with_its_tasks_and_their_processes():
    wraps = tuple(
        Wrap(name=name, cpus=1, memory_mib=1, mechanism="fork", processes=processes)
        for name, processes in (("v", (("a", "e"), ("b",), ("d", "f"))), ("w", (("c",),)))
    )
    plan = Plan(format=2, workflow="demo", planner="pgp", wraps=wraps, cpus=2)
    assert parts_of(plan, ("b", "a")) == [(0, (("a",), ("b",)))]
    assert parts_of(plan, ("c", "d")) == [(0, ((), ("d",))), (1, (("c",),))]
    assert parts_of(plan, ("e", "f")) == [(0, (("e",), ("f",)))]
    assert parts_of(plan, ()) == []


def mean_error(samples: list[Sample], predicted_ms: list[float]) -> float:
    pairs = zip(predicted_ms, samples, strict=True)
    return statistics.fmean(abs(latency / each.measured_ms - 1) for latency, each in pairs)


def silent(line: str) -> None:
    """Progress that nobody reads."""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["RFR", "LSTM", "GNN"])
def test_a_baseline_learns_delays_that_do_not_depend_on_the_workflow(name):
    runnable, missing = available()
    if name in missing:
        pytest.skip(missing[name])
    (baseline,) = (each for each in runnable if each.name == name)
    cheap = Baseline(name, baseline.candidates[:1])
    samples = learnable()
    predicted_ms, _ = predict_held_out(cheap, samples, "workflow", silent)
    again_ms, _ = predict_held_out(cheap, samples, "workflow", silent)
    assert predicted_ms == again_ms
    assert mean_error(samples, predicted_ms) < 0.06
    middle_ms = statistics.fmean(each.measured_ms for each in samples)
    assert mean_error(samples, [middle_ms] * len(samples)) > 0.2


@pytest.mark.parametrize("held_out", ["workflow", "structure"])
def test_no_sample_is_predicted_by_a_planner_that_saw_its_group(held_out):
    samples = learnable()
    seen = []

    def fit(train):
        known = {getattr(each, held_out) for each in train}
        seen.append(known)

        def predict(asked):
            assert known.isdisjoint(getattr(each, held_out) for each in asked)
            return [each.measured_ms for each in asked]

        return predict

    spy = Baseline("spy", (Candidate("-", fit),))
    predicted_ms, chosen = predict_held_out(spy, samples, held_out, silent)
    assert predicted_ms == [each.measured_ms for each in samples]
    assert len(seen) == len(chosen) == (3 if held_out == "workflow" else 5)


def test_a_sample_has_the_functions_of_its_plan(profile_of):
    document = {"tasks": {"a": "f", "b": "g", "c": "f"}, "edges": [["a", "c"], ["b", "c"]]}
    workflow = parse_workflow(document)
    profile = profile_of(workflow)
    layout = (((("a",),), (("b",),)), ((("c",),),))
    plan = plan_from_layout(layout, workflow, profile, planner="pgp", mechanism="pool")
    made = sample_of("mine", plan, workflow, profile, 12.0)
    assert (made.workflow, made.mechanism, made.measured_ms) == ("mine", "pool", 12.0)
    assert [[wrap.remote for wrap in stage] for stage in made.stages] == [[False, True], [False]]
    assert made.solo_ms == 8.0  # two stages of 4 ms


def test_what_is_not_installed_is_reported_with_the_line_that_installs_it(monkeypatch):
    monkeypatch.setattr(optional, "find_spec", lambda library: None)
    report = compare_baselines(learnable(), "workflow", silent)
    assert report.distributions == ()
    assert "pip install 'chiron-openfaas[evaluation]'" in report.not_run["RFR"]
    assert "pip install 'chiron-openfaas[baselines]'" in report.not_run["LSTM"]
    assert report.not_run["GNN"] == report.not_run["LSTM"]

"""The entry of a deployment says what was predicted of its plan."""

from __future__ import annotations

import math

import pytest

from chiron.generator.annotations import (
    PREDICTION,
    DeployedPrediction,
    annotate,
    read_needed,
    read_prediction,
)
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load, LoadPrediction, LoadTime, LoadWithin, Throughput


@pytest.mark.parametrize("planner", ["faastlane+", "one-to-one"])
def test_the_first_wrap_alone_says_what_was_predicted(planner, small, plan_of):
    plan = plan_of(small.workflow, planner)
    prediction = read_prediction(annotate(plan, 0, small.workflow))
    assert (prediction.cpus, prediction.latency_ms) == (plan.cpus, plan.predicted.latency_ms)
    assert prediction.slo_ms == plan.slo_ms == 50.0
    assert (prediction.low_ms, prediction.high_ms) == (
        plan.predicted.low_ms,
        plan.predicted.high_ms,
    )
    further = [annotate(plan, index, small.workflow) for index in range(1, len(plan.wraps))]
    assert [read_prediction(annotations) for annotations in further] == [None] * len(further)


def test_the_entry_says_why_its_prediction_is_not_to_be_relied_on(small, plan_of):
    plan = plan_of(small.workflow, "faastlane+")
    doubtful = plan.predicted.model_copy(update={"warnings": ("others were busy",)})
    plan = plan.model_copy(update={"predicted": doubtful})
    prediction = read_prediction(annotate(plan, 0, small.workflow))
    assert prediction.warnings == ("others were busy",)
    assert prediction.shown.endswith(" *")


def test_a_plan_without_a_prediction_has_none(small, plan_of):
    plan = plan_of(small.workflow).model_copy(update={"predicted": None})
    annotations = annotate(plan, 0, small.workflow)
    assert PREDICTION not in annotations
    assert read_needed(annotations) is None


def test_a_prediction_that_somebody_has_changed_is_refused():
    with pytest.raises(ChironError, match=r"annotation chiron\.prediction"):
        read_prediction({PREDICTION: '{"cpus": "two"}'})


def loaded(plan, *, bears: bool = True):
    """`plan` with two replicas of its first wrap, made for 20 requests a second."""
    first, *others = plan.wraps
    times = {"ms": 90.0, "low_ms": 60.0, "high_ms": 150.0}
    percentile = plan.predicted.within.percentile
    found = LoadPrediction(
        load=Load(per_s=20.0),
        within=(LoadWithin(percentile=percentile, **times),) if bears else (),
        mean=LoadTime(ms=70.0, low_ms=50.0, high_ms=120.0) if bears else None,
        replicas={first.name: 2},
        saturation=Throughput(per_s=40.0, low_per_s=30.0, high_per_s=50.0),
        throughput_per_s=20.0,
        cpu_ms=1.0,
        memory_mib=64,
    )
    wraps = (first.model_copy(update={"replicas": 2}), *others)
    return plan.model_copy(update={"under_load": found, "wraps": wraps})


def test_a_plan_for_a_rate_says_so_and_is_judged_by_that(small, plan_of):
    plan = loaded(plan_of(small.workflow, "faastlane+"))
    prediction = read_prediction(annotate(plan, 0, small.workflow))
    assert prediction == DeployedPrediction.of(plan)
    assert prediction.per_s == 20.0
    assert 1.0 <= read_needed(annotate(plan, 0, small.workflow)) <= 2.0
    assert prediction.cpus == plan.allocated_cpus > plan.cpus
    assert (prediction.judged_ms, prediction.expected_ms) == (90.0, 70.0)
    low_ms, high_ms = prediction.expected_range_ms
    assert (low_ms, high_ms) == (plan.predicted.expected_range_ms[0], 120.0)
    assert prediction.expected_shown == f"{low_ms:.1f} to 120.0 ms at up to 20/s"
    assert prediction.shown == f"p{prediction.within.percentile:g} 90.0 (60.0 to 150.0) at 20/s"
    assert prediction.alone == DeployedPrediction.of(plan.model_copy(update={"under_load": None}))


def test_a_plan_that_does_not_bear_its_rate_promises_nothing(small, plan_of):
    plan = loaded(plan_of(small.workflow, "faastlane+"), bears=False)
    prediction = read_prediction(annotate(plan, 0, small.workflow))
    assert prediction.promised is None
    assert prediction.judged_ms == prediction.expected_range_ms[1] == math.inf
    assert prediction.shown == "without end at 20/s"
    assert prediction.expected_shown.endswith(" ms or more at up to 20/s")

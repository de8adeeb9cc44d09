"""The entry of a deployment says what was predicted of its plan."""

from __future__ import annotations

import pytest

from chiron.generator.annotations import PREDICTION, annotate, read_prediction
from chiron.workflow.errors import ChironError


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
    assert PREDICTION not in annotate(plan, 0, small.workflow)


def test_a_prediction_that_somebody_has_changed_is_refused():
    with pytest.raises(ChironError, match=r"annotation chiron\.prediction"):
        read_prediction({PREDICTION: '{"cpus": "two"}'})

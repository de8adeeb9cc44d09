"""The entry of a deployment says what its plan promises."""

from __future__ import annotations

import pytest

from generator.annotations import PROMISE, annotate, read_promise
from workflow.errors import ChironError


def test_the_entry_alone_says_what_was_predicted(small, plan_of):
    plan = plan_of(small.workflow, "faastlane+")
    promise = read_promise(annotate(plan, 0, small.workflow))
    assert (promise.cpus, promise.latency_ms) == (plan.cpus, plan.predicted.latency_ms)
    assert (promise.low_ms, promise.high_ms) == (plan.predicted.low_ms, plan.predicted.high_ms)
    further = [annotate(plan, index, small.workflow) for index in range(1, len(plan.wraps))]
    assert [read_promise(annotations) for annotations in further] == [None] * len(further)


def test_a_plan_without_a_prediction_promises_nothing(small, plan_of):
    plan = plan_of(small.workflow).model_copy(update={"predicted": None})
    assert PROMISE not in annotate(plan, 0, small.workflow)


def test_a_promise_that_somebody_has_changed_is_refused():
    with pytest.raises(ChironError, match=r"annotation chiron\.promise"):
        read_promise({PROMISE: '{"cpus": "two"}'})

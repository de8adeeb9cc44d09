"""Plans for several payloads: the mix keeps the SLO, and who does not is named."""

from __future__ import annotations

import pytest

from predictor.predict import predict
from scheduler.choices import Choices
from scheduler.options import Options
from scheduler.schedule import job_of, schedule
from scheduler.strategies import every

QUICK = dict.fromkeys("abcd", "cpu 2 block 5")
SLOW = dict.fromkeys("abcd", "cpu 20 block 5")


@pytest.fixture
def mix(profile, of_payloads):
    """Three quick requests to one slow one."""
    return of_payloads(quick=(3.0, profile(**QUICK)), slow=(1.0, profile(**SLOW)))


def test_plans_are_judged_by_the_mean_of_what_is_predicted_for_each_payload(
    workflow, mix, platform
):
    job = job_of(workflow("a b c d"), mix, platform(), 99.0)
    for option in every(Options.of(job, "fork")):
        predicted = predict(option.plan, job.workflow, mix, job.platform)
        assert option.judged_ms == predicted.latency_ms


def test_the_cheapest_plan_of_a_mix_needs_less_than_that_of_its_slowest_payload(
    workflow, profile, mix, platform
):
    asked = workflow("a b c d"), mix, platform(), 50.0
    plan = schedule(*asked)
    slowest = schedule(asked[0], profile(**SLOW), *asked[2:])
    assert plan.meets_slo and slowest.meets_slo
    assert plan.cpus < slowest.cpus


def test_a_payload_over_the_slo_is_named_and_headroom_keeps_it(workflow, mix, platform):
    plan = schedule(workflow("a b c d"), mix, platform(), 50.0)
    (line,) = [line for line in plan.why if line.startswith("the mean of 2 payloads: quick ")]
    assert line.endswith("; slow over the SLO (--headroom keeps it for every payload)")

    safe = schedule(workflow("a b c d"), mix, platform(), 50.0, Choices(headroom=True))
    assert max(safe.predicted.payloads_ms.values()) <= 50.0
    (line,) = [line for line in safe.why if line.startswith("the mean of 2 payloads: quick ")]
    assert "over the SLO" not in line

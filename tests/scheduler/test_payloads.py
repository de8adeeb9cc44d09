"""Plans for several payloads: the mix keeps the SLO, and who does not is named."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

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
    (options,) = Options.all_of(job, "fork")
    for option in every(options):
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
    assert line.endswith("; slow over the SLO (--percentile 100 keeps it for every payload)")

    safe = schedule(workflow("a b c d"), mix, platform(), 50.0, Choices(headroom=True))
    assert max(safe.predicted.payloads_ms.values()) <= 50.0
    (line,) = [line for line in safe.why if line.startswith("the mean of 2 payloads: quick ")]
    assert "over the SLO" not in line


def test_a_share_of_the_requests_keeps_the_slo(workflow, mix, platform):
    known = workflow("a b c d")
    by_mean = schedule(known, mix, platform(), 50.0)
    most = schedule(known, mix, platform(), 50.0, Choices(percentile=75))
    every_one = schedule(known, mix, platform(), 50.0, Choices(percentile=95))
    assert most.predicted.payloads_ms["quick"] <= 50.0 < most.predicted.payloads_ms["slow"]
    assert max(every_one.predicted.payloads_ms.values()) <= 50.0
    assert most.cpus <= by_mean.cpus < every_one.cpus
    assert every_one.predicted.p95_ms == every_one.predicted.payloads_ms["slow"]
    assert every_one.why[0].startswith("predicted ") and "for 95 % of requests" in every_one.why[0]


def test_headroom_and_a_percentile_are_two_answers_to_one_question():
    with pytest.raises(ValidationError, match="leave percentile out"):
        Choices(headroom=True, percentile=95)

"""Plans for several payloads: the mix keeps the SLO, and who does not is named."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from chiron.predictor.predict import predict
from chiron.scheduler.choices import Choices
from chiron.scheduler.options import Options
from chiron.scheduler.schedule import job_of, schedule
from chiron.scheduler.strategies import every

QUICK = dict.fromkeys("abcd", "cpu 2 block 5")
SLOW = dict.fromkeys("abcd", "cpu 20 block 5")


@pytest.fixture
def mix(profile, of_payloads):
    """Three quick requests to one slow one."""
    return of_payloads(quick=(3.0, profile(**QUICK)), slow=(1.0, profile(**SLOW)))


@pytest.mark.parametrize("percentile", [50.0, 75.0, 75.1, 95.0, 100.0])
def test_plans_are_judged_by_what_their_prediction_says_of_the_percentile(
    workflow, mix, platform, percentile
):
    choices = Choices(percentile=percentile)
    job = job_of(workflow("a b c d"), mix, platform(), 99.0, choices)
    (options,) = Options.all_of(job, "fork")
    for option in every(options):
        predicted = predict(option.plan, job.workflow, mix, job.platform, percentile)
        assert option.judged_ms == predicted.within.ms
        slowest = percentile > 75
        assert option.judged_ms == predicted.payloads_ms["slow" if slowest else "quick"]


def test_the_cheapest_plan_of_a_mix_needs_less_than_that_of_its_slowest_payload(
    workflow, profile, mix, platform
):
    asked = workflow("a b c d"), mix, platform(), 50.0
    plan = schedule(*asked, Choices(percentile=75))
    slowest = schedule(asked[0], profile(**SLOW), *asked[2:])
    assert plan.meets_slo and slowest.meets_slo
    assert plan.cpus < slowest.cpus


def test_a_payload_over_the_slo_is_named_and_every_request_keeps_it(workflow, mix, platform):
    plan = schedule(workflow("a b c d"), mix, platform(), 50.0, Choices(percentile=75))
    (line,) = [line for line in plan.why if line.startswith("2 payloads: quick ")]
    assert line.endswith("; slow over the SLO (--percentile 100 keeps it for every payload)")

    safe = schedule(workflow("a b c d"), mix, platform(), 50.0, Choices(percentile=100))
    assert max(safe.predicted.payloads_ms.values()) <= 50.0
    (line,) = [line for line in safe.why if line.startswith("2 payloads: quick ")]
    assert "over the SLO" not in line


def test_a_share_of_the_requests_keeps_the_slo(workflow, mix, platform):
    known = workflow("a b c d")
    most = schedule(known, mix, platform(), 50.0, Choices(percentile=75))
    every_one = schedule(known, mix, platform(), 50.0)
    assert most.predicted.payloads_ms["quick"] <= 50.0 < most.predicted.payloads_ms["slow"]
    assert max(every_one.predicted.payloads_ms.values()) <= 50.0
    assert most.cpus < every_one.cpus
    assert every_one.predicted.within.ms == every_one.predicted.payloads_ms["slow"]
    assert every_one.why[0].startswith("predicted ") and "for 95 % of requests" in every_one.why[0]


@pytest.mark.parametrize("percentile", [0.0, -1.0, 100.1, None])
def test_a_percentile_is_a_number_above_0_and_up_to_100(percentile):
    with pytest.raises(ValidationError):
        Choices(percentile=percentile)


def test_where_nothing_is_said_an_slo_is_for_95_percent_of_the_requests():
    assert Choices().percentile == 95

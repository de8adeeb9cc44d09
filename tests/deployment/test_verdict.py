"""The sequential test errs as seldom as it says, whatever the share of requests over the SLO is."""

from __future__ import annotations

from collections import defaultdict

import pytest

from chiron.deployment.verdict import (
    AT_END,
    BUDGET_S,
    FEWEST,
    LONG_S,
    MOST,
    WHILE,
    Trial,
    clean_requests,
    last_verdict,
    verdict,
)
from chiron.workflow.profile import LONGEST_MS

ERROR = WHILE + AT_END


def chances(percentile, share, most):
    """How likely each verdict is where so large a share of all requests is over the SLO, exactly:
    all sequences of requests at once, by how many of them are over it."""
    found = defaultdict(float)
    running = {0: 1.0}
    for requests in range(1, most + 1):
        following = defaultdict(float)
        for over, chance in running.items():
            following[over] += chance * (1 - share)
            following[over + 1] += chance * share
        running = {}
        for over, chance in following.items():
            decide = verdict if requests < most else last_verdict
            reached = decide(percentile, requests, over)
            if reached:
                found[reached] += chance
            else:
                running[over] = chance
    assert not running
    return found


@pytest.mark.parametrize("percentile", [50.0, 90.0, 95.0, 99.0])
@pytest.mark.parametrize("factor", [1.0, 1.2, 2.0])
@pytest.mark.parametrize("most", [100, 400])
def test_an_slo_that_is_broken_is_seldom_said_to_be_kept(percentile, factor, most):
    share = min(1.0, factor * (1 - percentile / 100))
    found = chances(percentile, share, most)
    assert found["kept"] <= ERROR
    if factor == 1.0:
        assert found["broken"] <= ERROR  # at the boundary neither is sure
        assert found["unsure"] >= 1 - 2 * ERROR


@pytest.mark.parametrize("percentile", [50.0, 90.0, 95.0, 99.0])
@pytest.mark.parametrize("factor", [0.0, 0.5, 0.9])
def test_an_slo_that_is_kept_is_seldom_said_to_be_broken(percentile, factor):
    assert chances(percentile, factor * (1 - percentile / 100), 400)["broken"] <= ERROR


@pytest.mark.parametrize(
    ("share", "most", "reached"),
    [(0.01, 240, "kept"), (0.1, 400, "broken"), (0.5, 30, "broken"), (0.025, MOST, "kept")],
)
def test_what_is_clear_is_told_in_time(share, most, reached):
    assert chances(95.0, share, most)[reached] > 0.9


@pytest.mark.parametrize("percentile", [50.0, 90.0, 95.0, 99.0, 99.9])
def test_as_many_requests_within_the_slo_as_are_said_to_be_enough_are(percentile):
    enough = clean_requests(percentile)
    assert verdict(percentile, enough, 0) == "kept"
    assert verdict(percentile, max(FEWEST, enough // 2) - 1, 0) is None


def test_few_requests_tell_nothing():
    assert verdict(95.0, FEWEST - 1, FEWEST - 1) is None
    assert verdict(95.0, FEWEST, FEWEST) == "broken"


def test_of_every_request_one_over_the_slo_is_too_much():
    assert verdict(100.0, FEWEST, 1) == "broken"
    assert verdict(100.0, clean_requests(100.0) - 1, 0) is None
    assert verdict(100.0, clean_requests(100.0), 0) == "kept"


def test_a_trial_ends_with_the_request_that_makes_it_sure():
    trial = Trial(slo_ms=1000.0, percentile=95.0)
    while not trial.record(1000.0):  # what takes as long as the SLO keeps it
        pass
    assert (trial.verdict, trial.over) == ("kept", 0)
    assert FEWEST < len(trial.latencies_ms) <= clean_requests(95.0) <= trial.max_requests

    trial = Trial(slo_ms=10.0, percentile=95.0)
    while not trial.record(10.1):
        pass
    assert (trial.verdict, len(trial.latencies_ms), trial.latency_ms) == ("broken", FEWEST, 10.1)


def test_the_good_seconds_of_a_machine_are_not_enough_to_keep_an_slo():
    trial = Trial(slo_ms=15.0, percentile=95.0)
    while not trial.record(10.0 if sum(trial.latencies_ms) < 2000 else 20.0):
        pass
    assert trial.verdict == "broken"
    assert sum(trial.latencies_ms) < 1000 * LONG_S


@pytest.mark.parametrize("tries", [1, 5])
def test_quick_requests_end_before_they_take_long(tries):
    trial = Trial(slo_ms=1.0, percentile=95.0, tries=tries)
    assert [trial.record(0.5) for _ in range(MOST)] == [False] * (MOST - 1) + [True]
    assert trial.verdict == "kept"
    assert trial.usual_s(0.5) == MOST * 0.0005


def test_one_plan_is_measured_for_as_long_as_several_until_it_is_sure():
    """Of 4 % over the SLO a thousand requests tell nothing sure, and some thousand do."""
    one, alone = (Trial(slo_ms=10.0, percentile=95.0, tries=tries) for tries in (1, 5))
    for trial in (one, alone):
        for n in range(trial.max_requests):
            if trial.record(11.0 if n % 25 == 10 else 9.0):
                break
    assert (one.verdict, alone.verdict) == ("unsure", "kept")
    assert len(one.latencies_ms) == MOST < len(alone.latencies_ms) <= 5 * MOST
    assert one.limit_s(9.0) < alone.limit_s(9.0) <= BUDGET_S


def test_a_trial_at_the_boundary_stays_unsure():
    trial = Trial(slo_ms=10.0, percentile=95.0)
    ended = [trial.record(11.0 if n % 20 == 10 else 9.0) for n in range(trial.max_requests)]
    assert not any(ended)
    assert (trial.verdict, trial.over) == ("unsure", trial.max_requests // 20)
    assert trial.latency_ms == 9.0


def test_a_trial_is_given_longer_where_requests_are_slow_but_not_for_a_loose_slo():
    loose, tight = Trial(600_000.0, 95.0), Trial(1000.0, 95.0)
    assert loose.limit_s(20.0) == tight.limit_s(20.0)
    assert tight.limit_s(900.0) == 1.5 * clean_requests(95.0)
    assert loose.usual_s(900.0) < loose.limit_s(900.0)


def test_slow_requests_are_measured_for_the_budget_and_are_too_few_to_be_sure():
    trial = Trial(slo_ms=10_000.0, percentile=95.0)
    assert trial.limit_s(5000.0) == trial.usual_s(5000.0) == BUDGET_S
    for _ in range(24):
        trial.record(5000.0)
    assert trial.verdict == "unsure"


def test_at_a_rate_an_slo_is_kept_by_the_requests_of_some_seconds():
    trial = Trial(slo_ms=1000.0, percentile=95.0, per_s=200.0)
    ended = next(n for n in range(1, trial.max_requests + 1) if trial.record(5.0))
    assert (trial.verdict, ended) == ("kept", 200 * LONG_S)
    assert trial.usual_s(5.0) == LONG_S
    rare = Trial(slo_ms=1000.0, percentile=99.0, per_s=5.0)
    assert rare.usual_s(5.0) == pytest.approx(clean_requests(99.0) / 5)
    assert rare.limit_s(5.0) == BUDGET_S


@pytest.mark.parametrize("latency_ms", [50.0, 500.0])
def test_a_client_that_does_not_keep_the_rate_shows_nothing(latency_ms):
    trial = Trial(slo_ms=100.0, percentile=95.0, per_s=30.0)
    for number in range(400):
        trial.record(latency_ms, 11.0 if number % 10 == 0 else 0.0)
    assert (trial.late, trial.verdict, trial.learned_ms) == (40, "unsure", None)
    assert (
        "did not keep 30/s: 40 of 400 requests were sent more than 10 ms late" in trial.void_reason
    )


def test_a_few_requests_that_are_sent_late_do_not_matter():
    trial = Trial(slo_ms=100.0, percentile=95.0, per_s=30.0)
    for number in range(400):
        trial.record(50.0, 11.0 if number % 20 == 0 else 9.0)
    assert (trial.late, trial.void_reason, trial.verdict) == (20, None, "kept")
    assert trial.learned_ms == 50.0


def test_nothing_is_learned_of_other_plans_from_requests_that_were_refused():
    trial = Trial(slo_ms=100.0, percentile=95.0, per_s=30.0)
    for number in range(40):
        trial.record(LONGEST_MS if number % 5 == 0 else 50.0)
    assert (trial.verdict, trial.learned_ms) == ("broken", None)

"""What counts as drift, and what does not: laws of a pure function of the windows seen."""

from __future__ import annotations

from dataclasses import replace
from functools import reduce
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.adaptation.rules import (
    Record,
    Rules,
    Served,
    Window,
    by_slo,
    concluded,
    exceeding_per_s,
    judge,
    side,
)
from chiron.generator.annotations import DeployedPrediction
from chiron.workflow.errors import ChironError
from chiron.workflow.load import (
    Load,
    LoadLatency,
    LoadPrediction,
    LoadTime,
    LoadWithin,
    Throughput,
)
from chiron.workflow.plan import Plan, Prediction, Within, Wrap
from tests.rows import each_row

PREDICTION = DeployedPrediction(cpus=2, latency_ms=100.0, low_ms=90.0, high_ms=120.0)
RULES = Rules(windows=3, fewest=10, tolerance=0.25)
#: Of the prediction and the rules: 67.5 ms to 150 ms are within.
WITHIN, ABOVE, BELOW = Window(10, 149.0), Window(10, 151.0), Window(10, 67.0)
SILENT = Window(9, 1000.0)

windows = st.builds(Window, st.integers(0, 100), st.floats(0.0, 1000.0))
telling = st.sampled_from([WITHIN, ABOVE, BELOW, SILENT])


def after(seen: list[Window], record: Record | None = None) -> Record:
    return reduce(lambda r, w: r.seen(w, PREDICTION, RULES), seen, record or Record())


@each_row(
    ("mean_ms", "where"),
    [(67.4, "below"), (67.5, "within"), (100.0, "within"), (150.0, "within"), (150.1, "above")],
)
def test_the_range_has_a_tolerance_at_both_ends(mean_ms, where):
    assert side(mean_ms, PREDICTION, 0.25) == where
    twice = PREDICTION.model_copy(update={"mean_ms": 200.0})
    assert side(2 * mean_ms, twice, 0.25) == where


@each_row("outside", [ABOVE, BELOW])
def test_enough_windows_in_a_row_are_drift_and_fewer_are_not(outside):
    assert not after([outside] * 2).drifted(RULES)
    assert after([outside] * 3).drifted(RULES)


def test_windows_on_different_sides_are_no_drift():
    assert not after([ABOVE, BELOW] * 5).drifted(RULES)


def test_a_window_within_starts_the_count_anew():
    assert not after([ABOVE, ABOVE, WITHIN, ABOVE, ABOVE]).drifted(RULES)


@each_row(
    ("seen", "begins", "words"),
    [
        ([WITHIN] * 3, "as predicted (90.0 to 120.0 ms)", ["30 requests", "149.0 ms in the mean"]),
        ([WITHIN, SILENT, ABOVE], "unsure: 1 of 2 windows", ["look again"]),
        ([SILENT] * 3, "not known", ["27 requests", "below 10"]),
    ],
)
def test_windows_without_drift_end_in_a_verdict(seen, begins, words):
    told = concluded(seen, PREDICTION, RULES)
    assert told.startswith(begins)
    assert [word for word in words if word not in told] == []


def test_without_a_prediction_the_slo_alone_counts():
    promised = by_slo(200.0, 95.0)
    slow_and_kept, broken = Window(100, 5000.0, timed=100), Window(100, 1.0, timed=100, late=40)

    def after_each(window):
        return reduce(lambda r, w: r.seen(w, promised, RULES), [window] * 3, Record())

    assert not after_each(slow_and_kept).drifted(RULES)
    assert after_each(broken).drifted(RULES)
    told = concluded([slow_and_kept] * 3, promised, RULES)
    assert told.startswith("nothing is predicted, so the SLO alone counts: 300 requests")
    assert "0 of 300 over the SLO of 200 ms" in told


@given(st.lists(telling), st.integers(0, 3))
def test_windows_with_too_few_requests_neither_speak_for_drift_nor_against(seen, attempts):
    start = Record(attempts=attempts)
    spoken = [window for window in seen if window is not SILENT]
    assert after(seen, start) == after(spoken, start)


@given(st.lists(windows, max_size=40))
def test_drift_needs_that_many_telling_windows_at_the_end(seen):
    spoken = [w for w in seen if w.requests >= RULES.fewest][-RULES.windows :]
    sides = [side(w.mean_ms, PREDICTION, RULES.tolerance) for w in spoken]
    expected = len(sides) == RULES.windows and len(set(sides)) == 1 and sides[0] != "within"
    assert after(seen).drifted(RULES) is expected


@given(st.lists(windows, max_size=12), st.integers(1, 12))
def test_a_pause_lasts_its_windows_whatever_they_tell(seen, attempts):
    record = reduce(lambda r, _: r.attempted(RULES), range(attempts), Record())
    for number, window in enumerate(seen):
        if number < record.pause:
            assert not after(seen[: number + 1], record).drifted(RULES)
        record_now = after([*seen[:number], window], record)
        assert record_now.pause == max(0, record.pause - number - 1)


def test_pauses_grow_with_attempts_up_to_a_bound():
    records = [Record()]
    for _ in range(10):
        records.append(records[-1].attempted(RULES))
    pauses = [record.pause for record in records]
    assert pauses[:4] == [0, 3, 9, 21]
    assert pauses == sorted(pauses)
    assert pauses[6:] == [189] * 5


def test_drift_that_no_plan_mends_is_attempted_ever_more_rarely():
    """Such as load: the latency never comes back."""
    record, attempts = Record(), []
    for number in range(200):
        record = record.seen(ABOVE, PREDICTION, RULES)
        if record.drifted(RULES):
            attempts.append(number)
            record = record.attempted(RULES)
    gaps = [later - earlier for earlier, later in pairwise(attempts)]
    assert gaps == [6, 12, 24, 48, 96]


def test_every_window_back_in_range_forgives_an_attempt():
    record = Record().attempted(RULES).attempted(RULES)
    assert after([WITHIN], record).attempts == 1
    assert after([WITHIN] * 3, record).attempts == 0


#: It promised that 95 % of requests take up to 200 ms.
WITHIN_200 = Within(percentile=95, ms=180.0, low_ms=150.0, high_ms=210.0)
PROMISED = PREDICTION.model_copy(update={"slo_ms": 200.0, "within": WITHIN_200})


def looked(seen: list[Window], prediction: DeployedPrediction = PROMISED) -> Record:
    return reduce(lambda r, w: r.seen(w, prediction, RULES), seen, Record())


def test_an_slo_that_more_requests_break_than_promised_is_drift_where_the_mean_is_as_predicted():
    broken = Window(100, 100.0, timed=100, late=12)
    assert not looked([broken] * 2).drifted(RULES)
    record = looked([broken] * 3)
    assert record.drifted(RULES)
    assert (record.side, record.timed, record.late) == ("late", 300, 36)


@each_row(
    "prediction",
    [
        PREDICTION,
        PROMISED.model_copy(update={"slo_ms": None}),
        PROMISED.model_copy(update={"slo_ms": 149.0}),  # it was predicted to miss that
        PROMISED.model_copy(update={"within": WITHIN_200.model_copy(update={"percentile": 85.0})}),
    ],
    ids=["no percentile", "no SLO", "a plan that misses it", "a percentile that allows it"],
)
def test_what_was_not_promised_is_not_broken(prediction):
    assert not looked([Window(100, 100.0, timed=100, late=12)] * 9, prediction).drifted(RULES)


def test_late_requests_that_may_be_chance_are_no_drift_until_they_are_too_many():
    once = Window(10, 100.0, timed=10, late=1)
    verdicts = [looked([once] * count).drifted(RULES) for count in range(1, 60)]
    assert verdicts == sorted(verdicts), "the longer it lasts the surer it is"
    assert verdicts[0] is False and verdicts[-1] is True
    assert not looked([Window(100, 100.0, timed=100, late=5)] * 20).drifted(RULES)


def test_late_windows_are_counted_in_a_row_and_apart_from_those_outside():
    broken = Window(100, 100.0, timed=100, late=40)
    assert not looked([broken, broken, WITHIN, broken, broken]).drifted(RULES)
    assert not looked([broken, ABOVE] * 5).drifted(RULES)
    above = looked([broken, *[replace(ABOVE, timed=10, late=9)] * 3])
    assert (above.side, above.drifted(RULES)) == ("above", True)


def test_a_dearer_plan_that_keeps_the_slo_replaces_what_broke_it_though_the_mean_is_no_faster():
    broke = replace(SERVED, late=True)
    assert judge(broke, plan(3, 110.0), RULES).switch
    assert not judge(SERVED, plan(3, 110.0), RULES).switch
    assert not judge(broke, plan(3, 110.0, meets_slo=False), RULES).switch


def plan(cpus: int, latency_ms: float, meets_slo: bool = True) -> Plan:
    wrap = Wrap(name="w-wrap1", cpus=cpus, memory_mib=64, mechanism="fork", processes=(("a",),))
    predicted = Prediction(latency_ms=latency_ms, low_ms=latency_ms, high_ms=latency_ms)
    return Plan(
        format=2,
        workflow="w",
        planner="pgp",
        slo_ms=100.0,
        wraps=(wrap,),
        predicted=predicted,
        cpus=cpus,
        meets_slo=meets_slo,
    )


SERVED = Served(PREDICTION, same_source=True, same_asked=True)


@each_row(
    ("served", "new", "why"),
    [
        (SERVED, plan(2, 149.0), "brings nothing"),
        (SERVED, plan(3, 110.0), "takes 3 CPUs instead of 2, 110.0 ms and not 100.0"),
        (replace(SERVED, same_asked=False), plan(3, 110.0), "3 CPUs instead of 2"),
        (replace(SERVED, took_ms=105.0), plan(3, 110.0), "110.0 ms and not 105.0"),
    ],
)
def test_a_plan_that_brings_nothing_or_is_slower_and_dearer_is_not_worth_a_switch(served, new, why):
    verdict = judge(served, new, replace(RULES, best_effort=True))
    assert not verdict.switch
    assert why in verdict.why


@each_row(
    ("served", "new", "why"),
    [
        (Served(), plan(2, 100.0), "no prediction"),
        (replace(SERVED, same_source=False), plan(2, 100.0), "of these functions"),
        (replace(SERVED, same_source=False), plan(3, 110.0), "of these functions"),
        (replace(SERVED, same_asked=False), plan(2, 100.0), "other or unknown"),
        (SERVED, plan(1, 100.0), "1 CPU instead of 2"),
        (SERVED, plan(3, 90.0), "3 CPUs instead of 2"),
        (replace(SERVED, took_ms=200.0), plan(3, 110.0), "3 CPUs instead of 2"),
        (SERVED, plan(2, 300.0), "300.0 ms predicted instead of 100.0 ms"),
        (SERVED, plan(2, 30.0), "30.0 ms predicted"),
    ],
)
def test_another_cost_prediction_or_source_is_worth_a_switch(served, new, why):
    verdict = judge(served, new, RULES)
    assert verdict.switch
    assert why in verdict.why


def test_a_plan_that_misses_the_slo_replaces_nothing_unless_that_is_wanted():
    better = plan(1, 110.0, meets_slo=False)
    with pytest.raises(ChironError, match=r"110.0 ms on 1 CPU: .*--best-effort") as raised:
        judge(SERVED, better, RULES)
    assert raised.value.code == "slo-missed"
    assert judge(SERVED, better, replace(RULES, best_effort=True)).switch


#: Made for 20 requests a second, of which 95 % take up to 250 ms, and 180 ms in the mean at most.
AT_RATE = LoadLatency(
    load=Load(per_s=20.0),
    within=(LoadWithin(percentile=95, ms=250.0, low_ms=180.0, high_ms=280.0),),
    mean=LoadTime(ms=130.0, low_ms=110.0, high_ms=180.0),
)
LOADED = PROMISED.model_copy(update={"slo_ms": 300.0, "under_load": AT_RATE})


@each_row(
    ("mean_ms", "where"),
    [(67.4, "below"), (67.5, "within"), (180.0, "within"), (225.0, "within"), (225.1, "above")],
)
def test_a_plan_for_a_rate_may_take_from_what_one_request_takes_to_what_all_do(mean_ms, where):
    assert side(mean_ms, LOADED, 0.25) == where


def test_a_plan_for_a_rate_promises_what_it_does_at_the_rate():
    broken = Window(100, 150.0, timed=100, late=12)
    assert looked([broken] * 3, LOADED).drifted(RULES)
    missed = LOADED.model_copy(update={"slo_ms": 179.0})  # met by single requests alone
    assert not looked([broken] * 9, missed).drifted(RULES)


@given(st.floats(0.5, 200), st.floats(0.2, 4), st.integers(1, 5))
def test_a_rate_exceeds_the_planned_one_where_that_is_no_chance(planned, times, count):
    window = Window(10, 100.0, arrived=times * planned * 60, seconds=60.0)
    found = exceeding_per_s([window] * count, planned)
    assert found is None or found == pytest.approx(times * planned, rel=0.01)
    arrived = count * window.arrived
    assert (found is not None) == (arrived - 2 * arrived**0.5 > count * 60 * planned)
    assert exceeding_per_s([Window(100, 100.0)] * count, planned) is None  # it is not known


def at_rate(per_s: float, cpus: int, mean_ms: float, meets_slo: bool = True) -> Plan:
    planned = plan(cpus, 100.0, meets_slo)
    found = LoadPrediction(
        load=Load(per_s=per_s),
        within=(),
        mean=LoadTime(ms=mean_ms, low_ms=mean_ms, high_ms=mean_ms),
        replicas={"w-wrap1": 1},
        saturation=Throughput(per_s=1.0, low_per_s=1.0, high_per_s=1.0),
        throughput_per_s=1.0,
        cpu_ms=1.0,
        memory_mib=1,
    )
    return planned.model_copy(update={"under_load": found})


@each_row(
    ("served", "new", "switch", "why"),
    [
        (Served(LOADED, None, False, True, True), at_rate(20.0, 2, 140.0), False, "nothing"),
        (Served(LOADED, None, False, True, True), at_rate(20.0, 3, 140.0), False, "3 CPUs instead"),
        (Served(LOADED, None, False, True), at_rate(40.0, 4, 140.0), True, "40/s instead of 20/s"),
        (Served(LOADED, 400.0, False, True), at_rate(40.0, 4, 140.0), True, "40/s instead of 20/s"),
        (Served(LOADED, None, False, True), at_rate(10.0, 1, 140.0), True, "other or unknown"),
        (Served(PROMISED, None, False, True), at_rate(20.0, 4, 140.0), True, "single requests"),
        (Served(LOADED, None, False, True), at_rate(40.0, 4, 140.0, False), False, "4 CPUs"),
    ],
)
def test_a_plan_for_more_requests_may_cost_more(served, new, switch, why):
    verdict = judge(served, new, RULES)
    assert (verdict.switch, why in verdict.why) == (switch, True), verdict.why


def test_a_plan_whose_queue_has_no_end_is_told_with_its_rate():
    hopeless = at_rate(20.0, 2, 140.0, False)
    with pytest.raises(ChironError, match=r"100 ms at 20/s, .* takes longer and longer on 2 CPUs"):
        judge(Served(), hopeless, RULES)

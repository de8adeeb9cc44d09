"""How many replicas there should be: laws of a pure function of the load."""

from __future__ import annotations

from functools import reduce
from itertools import pairwise
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from chiron.adaptation.scaling import (
    CALM,
    PRESSED,
    TARGET,
    Bounds,
    Load,
    Planned,
    Record,
    arrived,
    behind,
    growth,
    load_of,
    planned_for,
)
from chiron.deployment.replicas import FunctionMetrics, ReplicaMetrics
from chiron.openfaas.objects import MAX_LABEL, MIN_LABEL, TARGET_LABEL, TYPE_LABEL
from tests.rows import each_row

AT_ONCE = 4
bounds = st.tuples(st.integers(1, 30), st.integers(1, 30)).map(lambda b: Bounds(min(b), max(b)))
loads = st.builds(
    Load, st.integers(1, 30), st.floats(0, 1000), st.integers(1, 64), st.floats(0.0, 1.0)
)
demands = st.lists(st.floats(0, 200) | st.floats(0, 5), max_size=4).map(
    lambda levels: [level for level in levels for _ in range(2 * CALM)]
)


def scaled(demand: list[float], limits: Bounds, pressed_below: float = 0.0) -> list[int]:
    """Replicas after each look, where so many requests in all are there at each.

    With fewer than so many for each request, tasks are held back for a share of the time.
    """
    replicas, record, found = limits.least, Record(), []
    for requests in demand:
        needed = pressed_below * requests
        pressure = 1 - replicas / needed if replicas < needed else 0.0
        record = record.seen(Load(replicas, requests / replicas, AT_ONCE, pressure))
        replicas = record.wanted(replicas, limits)
        found.append(replicas)
    return found


@given(st.lists(loads, max_size=50), st.integers(1, 30), bounds)
def test_there_are_never_fewer_or_more_than_the_labels_say(seen, current, limits):
    record = reduce(Record.seen, seen, Record())
    assert limits.least <= record.wanted(current, limits) <= limits.most


@given(st.lists(loads, max_size=50), loads, st.floats(0, 100), st.floats(0, 1), bounds)
def test_with_more_to_do_there_are_no_fewer(seen, load, requests, pressure, limits):
    more = Load(
        load.replicas,
        load.requests + requests,
        load.at_once,
        min(1.0, load.pressure + pressure),
    )
    record = reduce(Record.seen, seen, Record())
    less, greater = (record.seen(each).wanted(each.replicas, limits) for each in (load, more))
    assert less <= greater


@given(demands, bounds, st.floats(0, 1))
def test_there_are_fewer_by_half_at_most_and_only_when_it_has_been_calm(
    demand, limits, pressed_below
):
    found = scaled(demand, limits, pressed_below)
    changed = 0
    for look, (before, after) in enumerate(pairwise([limits.least, *found])):
        if after < before:
            assert look - changed >= CALM - 1
            assert 2 * after >= before
        if after != before:
            changed = look


@given(st.floats(0, 200), st.floats(0, 0.5))
def test_a_load_that_stays_gets_replicas_that_stay(requests, pressed_below):
    found = scaled([requests] * 400, Bounds(1, 100), pressed_below)
    changes = [look for look, (a, b) in enumerate(pairwise(found)) if a != b]
    # It tries once in a while whether fewer would do now, ever more rarely.
    assert len([look for look in changes if look > 10]) <= 20
    assert found[-1] >= requests / AT_ONCE


@given(st.integers(1, 200))
def test_without_pressure_each_replica_gets_its_share_within_a_few_looks(requests):
    found = scaled([float(requests)] * 4, Bounds(1, 200))
    share = requests / found[-1] / AT_ONCE
    assert share <= TARGET + 1e-6
    assert found[-1] == 1 or requests / (found[-1] - 1) / AT_ONCE > TARGET


@each_row(
    ("load", "wanted"),
    [
        (Load(1, 10.0, 1), 4),  # at most four times as many at once
        (Load(4, 2.5, 1), 10),  # a replica for each request, and no more
        (Load(10, 1.0, 1), 10),
        (Load(1, 10.0, 4), 4),
        (Load(4, 2.5, 4), 4),
        (Load(1, 0.2, 1), 1),
        (Load(1, 10.0, 1, busy=0.5), 2),  # two of them keep all cores busy
        (Load(2, 5.0, 1, busy=0.9), 2),
        (Load(2, 5.0, 1, busy=0.01), 8),  # requests wait for something else than cores
        (Load(1, 0.2, 1, by_rate=2.1), 3),  # the rate alone needs more
        (Load(1, 0.2, 1, by_rate=9.0), 4),  # no more than all others at a look
        (Load(2, 0.2, 1, busy=0.9, by_rate=9.0), 2),  # all cores are busy
        (Load(4, 2.5, 1, by_rate=2.0), 10),  # a queue has to be worked off besides
        (Load(2, 2.0, 16, computing=1.0), 3),  # cores are the limit, and not requests at once
        (Load(2, 2.0, 16, computing=0.6), 2),
        (Load(1, 1.0, 16, computing=1.0), 1),  # one request computes on one replica
        (Load(1, 10.0, 4, is_behind=True), 1),  # they would wait elsewhere
        (Load(2, 5.0, 4, is_behind=True, computing=0.9), 3),
    ],
)
def test_there_are_as_many_as_help(load, wanted):
    assert Record().seen(load).wanted(load.replicas, Bounds()) == wanted


def test_pressure_alone_raises_and_keeps_what_it_needs():
    held = Load(replicas=2, requests=1.0, at_once=AT_ONCE, pressure=0.5)
    record = Record().seen(held)
    assert record.wanted(2, Bounds(1, 10)) == 4
    calm = Load(replicas=4, requests=0.5, at_once=AT_ONCE)
    for _ in range(CALM):
        assert record.wanted(4, Bounds(1, 10)) == 4
        record = record.seen(calm)
    assert Record().seen(Load(2, 1.0, AT_ONCE, PRESSED - 0.01)).wanted(2, Bounds(1, 10)) == 2


def test_what_was_pressed_before_is_tried_ever_more_rarely():
    """As with a sender that needs three replicas, whose requests alone would need one."""
    found = scaled([2.0] * 1500, Bounds(1, 10), pressed_below=1.5)
    lowered = [look for look, (a, b) in enumerate(pairwise(found)) if b < a]
    gaps = [later - earlier for earlier, later in pairwise(lowered)]
    assert len(gaps) >= 4
    assert gaps[0] < gaps[1] < gaps[2]


@each_row(
    ("labels", "expected"),
    [
        ({}, Bounds(1, 20)),
        ({MIN_LABEL: "2", MAX_LABEL: "5"}, Bounds(2, 5)),
        ({MIN_LABEL: "0", MAX_LABEL: "five"}, Bounds(1, 20)),
        ({MIN_LABEL: "30"}, Bounds(30, 30)),
    ],
)
def test_bounds_are_those_of_the_labels_or_openfaas_s_own(labels, expected):
    assert Bounds.of(labels) == expected


RPS = {TYPE_LABEL: "rps", TARGET_LABEL: "20"}


@each_row(
    ("labels", "planned"),
    [
        ({}, None),
        ({TARGET_LABEL: "20"}, None),
        ({TYPE_LABEL: "rps"}, None),
        (RPS | {TYPE_LABEL: "cpu"}, None),
        (RPS, Planned(20.0, 1.0)),
        (RPS | {MIN_LABEL: "3"}, Planned(60.0, 3.0)),
    ],
)
def test_a_rate_is_planned_for_where_the_labels_count_requests(labels, planned):
    assert planned_for(labels) == planned


@each_row(
    ("labels", "planned"),
    [
        (RPS | {MIN_LABEL: "3"}, Planned(52.0, 2.5)),  # 20 is the whole part of 52 / 2.5
        (RPS | {MIN_LABEL: "3", TARGET_LABEL: "10"}, Planned(30.0, 3.0)),  # somebody wants more
        ({}, None),
    ],
)
def test_the_rate_of_the_plan_counts_exactly_while_its_labels_are_there(labels, planned):
    assert planned_for(labels, 52.0, 2.5) == planned


def replica_metrics(replica: str, at: float, **values: float) -> ReplicaMetrics:
    """What a replica with four requests at once on one core says; it `has_answered` so many."""
    answers = {"200": values.pop("has_answered", 0.0)}
    names = {"in_hand": 0.0, "waiting": 0.0, "at_once": 4.0} | values
    metrics = {f"chiron_requests_{name}": value for name, value in names.items()}
    metrics["chiron_pressure_seconds_total"] = 0.0
    metrics["chiron_cpu_seconds_total"] = names.get("cpu_s", 0.0)
    metrics["chiron_cores"] = 1.0
    return ReplicaMetrics(replica, at, metrics, answers)


BEFORE = {"old": replica_metrics("old", 0.0, has_answered=100.0, cpu_s=10.0)}
OLD = replica_metrics("old", 1.0, has_answered=150.0, cpu_s=11.0, in_hand=4.0)


def function_metrics(*replicas: ReplicaMetrics, unanswered: int = 0) -> FunctionMetrics:
    return FunctionMetrics(
        {each.replica: each for each in replicas}, len(replicas) + unanswered, unanswered
    )


def test_a_replica_that_is_starting_has_no_part_in_the_rate_and_does_not_compute():
    alone = function_metrics(OLD)
    assert arrived(alone, BEFORE) == (54.0, 1.0)  # four are in hand
    new = replica_metrics("new", 1.0, cpu_s=3.0)  # its modules were imported
    for starting in (function_metrics(OLD, new), function_metrics(OLD, unanswered=1)):
        assert arrived(starting, BEFORE) == (54.0, 1.0)
        load = load_of(starting, BEFORE, by_pressure=True, busy=0.0)
        assert (load.requests, load.computing) == (2.0, 0.5)
        assert load.needs == load_of(alone, BEFORE, by_pressure=True, busy=0.0).needs


def test_a_replica_too_busy_to_answer_stands_for_as_much_as_the_others():
    before = BEFORE | {"busy": replica_metrics("busy", 0.0)}
    both = function_metrics(OLD, unanswered=1)
    assert arrived(both, before) == (108.0, 1.0)
    load = load_of(both, before, by_pressure=True, busy=0.0)
    assert (load.requests, load.computing) == (4.0, 1.0)


def test_nothing_has_arrived_that_is_known_of_replicas_that_were_not_heard_before():
    assert arrived(function_metrics(OLD), {}) is None


def test_an_entry_waits_for_a_wrap_that_has_too_few_replicas_and_gets_more_when_it_has_enough():
    entry = Load(1, 20.0, 4)
    few, enough = Load(1, 4.0, 4), Load(2, 2.0, 4)
    assert Record().seen(behind(entry, [enough, few])).wanted(1, Bounds()) == 1
    assert Record().seen(behind(entry, [enough])).wanted(1, Bounds()) == 4
    assert behind(entry, []) == entry


@given(st.floats(0.5, 200), st.floats(0.2, 4), st.integers(1, 10))
def test_replicas_are_as_many_times_the_planned_as_the_rate_is(planned, times, looks):
    requests = times * planned * looks
    found = growth(requests, looks, planned)
    assert found <= times
    assert found >= times - 2 * times / requests**0.5 - 1e-9


def test_what_arrives_at_random_at_the_planned_rate_seldom_needs_more():
    random, planned, looks = Random(1), 50.0, 5
    counts = [sum(random.expovariate(planned) for _ in range(300)) for _ in range(2000)]
    grown = [growth(300, seconds, planned) for seconds in counts]
    assert sum(each > 1 for each in grown) < 0.04 * len(grown)
    assert growth(2 * planned * looks, looks, planned) > 1.5
    assert growth(0.0, 0.0, planned) == 0.0

"""Triggers of streams: each object is taken once, whatever the order and however often it comes."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.buckets import triggers
from chiron.wrap.core.buckets.triggers import (
    Batch,
    ByBatchSize,
    ByName,
    BySet,
    ByTime,
    DynamicGroup,
    DynamicJoin,
    Immediate,
    Item,
    Redundant,
    StreamTrigger,
)

Trigger = StreamTrigger[str]
NAMES = "abc"


@st.composite
def objects(draw: st.DrawFn) -> list[Item[str]]:
    """Objects of up to three sessions, in any order, of which some come several times."""
    count = draw(st.integers(0, 12))
    once = [
        Item(
            (number,),
            f"v{number}",
            session=(draw(st.integers(0, 2)),),
            name=draw(st.sampled_from(NAMES)),
            group=draw(st.sampled_from("xy")),
            size=draw(st.integers(0, 9)),
        )
        for number in range(count)
    ]
    again = draw(st.lists(st.sampled_from(once))) if once else []
    return draw(st.permutations(once + again))


def taken(batches: Iterable[Batch[str]]) -> list[Item[str]]:
    return [item for batch in batches for item in batch.items]


def to_the_end(trigger: Trigger, items: Sequence[Item[str]]) -> list[Batch[str]]:
    """All that fires of `items`, the last sign of life included; then all come once more."""
    fired: list[Batch[str]] = []
    for item in items:
        fired += trigger.on_object(item, 0.0)
    fired += trigger.drain(0.0)
    for session in sorted({item.session for item in items}):
        fired += trigger.on_sources_ended(session, 0.0)
    for item in items:
        assert not trigger.on_object(item, 0.0)
    for session in sorted({item.session for item in items}):
        assert not trigger.on_sources_ended(session, 0.0)
    assert trigger.size == 0
    return fired


def numbers(batches: Iterable[Batch[str]]) -> list[list[int]]:
    return sorted([number for ((number,), *_) in batch.items] for batch in batches)


@pytest.mark.parametrize(
    "make",
    [
        Immediate,
        lambda: ByName(NAMES),
        lambda: ByBatchSize(3),
        lambda: ByTime(1.0),
        DynamicJoin,
        DynamicGroup,
    ],
)
@given(objects())
def test_every_object_is_taken_once(make: Callable[[], Trigger], items):
    found = taken(to_the_end(make(), items))
    assert sorted(found) == sorted(set(items))


@given(objects())
def test_immediate_fires_with_each_and_by_name_with_those_of_its_names(items):
    assert numbers(to_the_end(Immediate(), items)) == sorted([i.number[0]] for i in set(items))
    found = taken(to_the_end(ByName("ab"), items))
    assert sorted(found) == sorted(item for item in set(items) if item.name in "ab")


@given(objects(), st.integers(1, 5))
def test_batches_have_their_size_but_for_the_last(items, size):
    *full, last = to_the_end(ByBatchSize(size), items) or [Batch((), 0.0)]
    assert all(len(batch.items) == size for batch in full)
    assert len(last.items) <= size


@given(objects())
def test_a_set_fires_once_a_session_that_has_all_names_in_their_order(items):
    fired = to_the_end(BySet("cab"), items)
    names: dict[tuple[int, ...], set[str]] = {}
    for item in items:
        names.setdefault(item.session, set()).add(item.name)
    complete = {session for session, found in names.items() if found == set(NAMES)}
    assert [[item.name for item in batch.items] for batch in fired] == [[*"cab"]] * len(complete)
    assert {item.session for item in taken(fired)} == complete


@given(objects(), st.integers(1, 4))
def test_k_of_n_fires_once_a_session_with_the_first_k(items, k):
    fired = to_the_end(Redundant(k), items)
    sessions = [item.session for item in dict.fromkeys(items)]
    assert sorted(batch.items[0].session for batch in fired) == sorted(
        session for session in set(sessions) if sessions.count(session) >= k
    )
    for batch in fired:
        session = batch.items[0].session
        first = [item for item in dict.fromkeys(items) if item.session == session][:k]
        assert list(batch.items) == sorted(first)


@given(objects(), st.randoms())
def test_what_joins_and_groups_fire_does_not_depend_on_the_order(items, random):
    other = random.sample(items, len(items))
    for make in (DynamicJoin, DynamicGroup, lambda: BySet(["a"])):
        if make in (DynamicJoin, DynamicGroup):
            assert numbers(to_the_end(make(), items)) == numbers(to_the_end(make(), other))
    groups = to_the_end(DynamicGroup(), items)
    keys = [{(item.session, item.group) for item in batch.items} for batch in groups]
    assert all(len(key) == 1 for key in keys)
    assert len(keys) == len({(item.session, item.group) for item in items})


@given(st.lists(st.floats(0, 20), max_size=30), st.sampled_from([0.25, 1.0, 3.0]))
def test_a_window_has_what_came_within_it_and_is_due_at_its_end(times, window_s):
    trigger, fired = ByTime[str](window_s), list[Batch[str]]()
    for number, now_s in enumerate(sorted(times)):
        if trigger.due_s <= now_s:
            fired += trigger.on_time(trigger.due_s)
        fired += trigger.on_object(Item((number,), ""), now_s)
    fired += trigger.on_time(math.inf)
    assert trigger.due_s == math.inf
    came = sorted(times)
    windows: dict[int, list[int]] = {}
    for number, now_s in enumerate(came):
        windows.setdefault(math.floor(now_s / window_s), []).append(number)
    assert numbers(fired) == list(windows.values())
    assert [batch.due_s for batch in fired] == [(each + 1) * window_s for each in windows]


def test_a_window_that_is_over_fires_before_what_comes_later_is_taken_in():
    trigger = ByTime[str](1.0)
    assert not trigger.on_object(Item((1,), ""), 0.5)
    (batch,) = trigger.on_object(Item((2,), ""), 1.5)  # nobody has asked at 1.0
    assert (numbers([batch]), batch.due_s, trigger.due_s) == ([[1]], 1.0, 2.0)


def test_a_batch_that_is_not_full_fires_when_its_first_object_has_waited_for_long_enough():
    trigger = ByBatchSize[str](3, wait_s=0.5)
    trigger.on_object(Item((1,), ""), 1.0)
    trigger.on_object(Item((2,), ""), 1.4)
    assert trigger.due_s == 1.5 and not trigger.on_time(1.4)
    assert numbers(trigger.on_time(1.5)) == [[1, 2]]
    assert trigger.due_s == math.inf


def test_a_source_is_said_to_be_late_once_for_each_start():
    trigger = Immediate[str]()
    trigger.rerun_after_s = 1.0
    trigger.on_source_started((1,), 0.0)
    trigger.on_source_started((2,), 0.5)
    assert trigger.rerun_due_s == 1.0
    assert trigger.due_for_rerun(1.2) == [(1,)]
    trigger.on_source_started((1,), 1.2)
    assert trigger.due_for_rerun(3.0) == [(2,), (1,)]
    assert trigger.rerun_due_s == math.inf and not trigger.due_for_rerun(9.0)


def test_what_is_remembered_of_what_was_taken_is_bounded(monkeypatch):
    monkeypatch.setattr(triggers, "_REMEMBERED", 3)
    trigger = Immediate[str]()
    for number in range(10):
        assert trigger.on_object(Item((number,), ""), 0.0)
    assert not trigger.on_object(Item((9,), ""), 0.0)
    assert trigger.on_object(Item((1,), ""), 0.0)

"""Which wraps get what tasks give, and what goes with the answer; no message is sent."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.sharing import Shares, Sharing, is_needed

#: Task 1 is for b, whose end alone c awaits; 2 is for the coordinator; 3 is for this wrap itself.
TAKERS = {1: {"b": True, "c": False}, 2: {"home": True}, 3: {"a": True}, 4: {}}


def sharing(own: str = "a", wanted: frozenset[int] = frozenset()) -> Sharing:
    return Sharing(TAKERS, own, "home", wanted)


def test_who_needs_the_object_gets_it_and_who_awaits_the_end_is_told() -> None:
    assert sharing().of([1], last=False) == Shares({"b": {1: True}, "c": {1: False}}, set(), {1})
    assert sharing().of([3, 4], last=False) == Shares({}, set(), set())


def test_the_coordinator_gets_the_last_outputs_with_the_answer() -> None:
    assert sharing().of([2], last=False) == Shares({"home": {2: True}}, set(), {2})
    assert sharing().of([2, 3], last=True) == Shares({}, {2}, {2})


def test_an_answer_waits_for_no_other_wrap() -> None:
    """Else a wrap could end before another one has what it gave."""
    shares = sharing().of([1, 2], last=True)
    assert shares == Shares({"b": {1: True}, "c": {1: False}, "home": {2: True}}, set(), {1, 2})


def test_what_is_wanted_goes_to_the_coordinator_too() -> None:
    wants = sharing(wanted=frozenset({3}))
    assert wants.of([3], last=True) == Shares({}, {3}, {3})
    assert wants.needed_by(3) == {"a": True, "home": True}


def test_the_coordinator_sends_itself_nothing() -> None:
    home = sharing("home", frozenset({4}))
    assert not home.sends(2) and not home.sends(4) and home.sends(1)
    assert home.of([2, 4], last=True) == Shares({}, {2, 4}, set())
    assert home.of([2, 4], last=False) == Shares({}, set(), set())


WRAPS = st.sampled_from(["a", "b", "home"])
ALL_TAKERS = st.dictionaries(st.integers(0, 4), st.dictionaries(WRAPS, st.booleans()), min_size=1)


@given(ALL_TAKERS, WRAPS, st.sets(st.integers(0, 4)), st.booleans())
def test_every_other_wrap_hears_once_of_each_task_that_it_waits_for(
    takers: dict[int, dict[str, bool]], own: str, wanted: set[int], last: bool
) -> None:
    shares = Sharing(takers, own, "home", wanted).of(list(takers), last)
    for task, its in takers.items():
        needed = its | ({"home": True} if task in wanted else {})
        for wrap in {"a", "b", "home"} - {own}:
            told = task in shares.messages.get(wrap, {})
            answered = wrap == "home" and task in shares.in_answer
            assert not (told and answered)
            if needed.get(wrap):
                assert answered or shares.messages[wrap][task]
                assert task in shares.leaving
        assert own not in shares.messages


@pytest.mark.parametrize(("task", "needed"), [(1, False), (3, True), (4, True)])
def test_a_wrap_needs_what_its_tasks_take_and_what_is_wanted(task: int, needed: bool) -> None:
    assert is_needed(TAKERS, "a", {4}, task) == needed

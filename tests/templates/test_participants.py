"""What a coordinator does about each reply of another wrap; no process, clock or thread."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from wrap.core.errors import TaskError
from wrap.core.participants import NoticeRounds, Participants, Reply
from wrap.core.wrap_spec import Entry

from tests.rows import each_row
from tests.templates.clusters import over_wraps

#: A chain over three wraps: 0 here, 1 far, 2 near, 3 here.
PLACES = {0: "home", 1: "far", 2: "near", 3: "home"}
NAMES = ("far", "near")


def participants(attempts: int = 2) -> Participants:
    wraps = over_wraps(
        PLACES,
        {"home": [[0, 3]], "far": [[1]], "near": [[2]]},
        inputs={0: None, 1: 0, 2: 1, 3: 2},
        buckets=[([], [0]), ([0], [1]), ([1], [2]), ([2], [3])],
        entry=Entry(3),
        attempts=attempts,
    )
    wrap = wraps["home"]
    made = Participants(wrap, frozenset({3}))
    for name in NAMES:
        made.ask(name, wrap.remotes[name])
    return made


@each_row("reply", Reply)
def test_a_wrap_is_lost_unless_it_answers(reply: Reply) -> None:
    made, gone = participants(), reply not in (Reply.RESULTS, Reply.FAILURE)
    assert made.replied("far", made.asked["far"].number, reply)
    assert ("far" in made.asked) != gone
    assert made.is_waiting({3})
    error = made.loss_error()
    assert (error is not None) == gone
    assert error is None or (error.wrap, error.status) == ("far", 504)


@each_row("reply", Reply)
def test_of_a_question_that_was_asked_again_results_alone_count(reply: Reply) -> None:
    made = participants()
    former = made.asked["far"].number
    now = made.ask("far", [1])
    assert made.replied("far", former, reply) == (reply is Reply.RESULTS)
    made.ended("far", former)
    assert made.asked["far"] == now


def test_it_is_over_when_all_have_replied_and_what_is_wanted_is_here() -> None:
    """Before the first question it is not."""
    made = participants()
    assert Participants(made._workflow, frozenset()).is_waiting(set())
    for name in NAMES:
        assert made.is_waiting({3})
        made.ended(name, made.asked[name].number)
    assert made.is_waiting({0, 2})
    assert not made.is_waiting({0, 2, 3})


def broken(made: Participants, name: str) -> None:
    assert made.replied(name, made.asked[name].number, Reply.BROKEN)


def test_a_connection_is_made_anew_five_times_in_an_execution() -> None:
    made = participants()
    for number in range(5):
        name = NAMES[number % 2]
        broken(made, name)
        made.ask(name, made.reconnected(name))
        assert set(made.asked[name].tasks) == {1 + number % 2}
    broken(made, "far")
    with pytest.raises(TaskError, match="wrap far break again and again"):
        made.reconnected("far")


def test_a_replica_that_has_to_begin_though_it_is_ending_gets_the_same_tasks() -> None:
    made = participants()
    question = made.asked["near"]
    assert made.replied("near", question.number, Reply.REFUSED)
    again = made.ask("near", made.tasks_to_force("near"))
    assert (again.tasks, again.number > question.number) == (question.tasks, True)
    assert made.loss_error() is None


@each_row(("attempts", "losses"), [(1, 0), (2, 1), (3, 2)])
def test_a_wrap_is_lost_as_often_as_there_are_attempts(attempts: int, losses: int) -> None:
    made = participants(attempts)
    for loss in range(losses + 3):
        broken(made, "far")
        # One that had begun nothing costs no attempt.
        assert made.replaced("far", is_lost=loss < losses) == ["near"]
        made.ask("far", [1])
    broken(made, "far")
    with pytest.raises(TaskError, match="wrap far ended while it ran") as lost:
        made.replaced("far", is_lost=True)
    assert lost.value.wrap == "far"


def test_of_two_that_are_lost_at_once_each_is_asked_once() -> None:
    """What the first needs of the second is asked for when that one has been replaced."""
    made = participants()
    for name in NAMES:
        broken(made, name)
    made.replaced("near", is_lost=True)
    found = made.rerun_after_loss("near", {}, here={0})
    assert found.begin == {"near": {2}, "far": {1}}
    assert made.begin_again("near", found.begin) == {"near": {2}}
    assert made.is_waiting({3})
    made.ask("near", {2})
    made.replaced("far", is_lost=True)
    found = made.rerun_after_loss("far", {"near": set()}, here={0})
    assert made.begin_again("far", found.begin) == {"far": {1}}
    assert not made.asked.keys() - {"near"}
    made.ask("far", {1})
    assert made.loss_error() is None and set(made.asked) == set(NAMES)


def test_what_has_ended_elsewhere_and_kept_nothing_is_asked_again() -> None:
    made = participants()
    made.ended("far", made.asked["far"].number)
    broken(made, "near")
    made.replaced("near", is_lost=True)
    found = made.rerun_after_loss("near", {}, here={0})
    assert made.begin_again("near", found.begin) == {"near": {2}, "far": {1}}


@each_row(
    ("change", "what"), [("late", "far, near did not answer"), ("gone", "far ended, and was not")]
)
def test_at_the_deadline_it_is_said_who_is_missing(change: str, what: str) -> None:
    made = participants()
    if change == "gone":
        broken(made, "far")
    error = made.timeout_error()
    assert error is not None and error.message.startswith(what)
    assert (error.code, error.wrap) == ("timeout", "far")


@given(st.lists(st.dictionaries(st.sampled_from(NAMES), st.sampled_from([(1,), None])), max_size=5))
def test_all_are_told_until_they_have_heard_and_no_more_than_three_times(rounds):
    notices, heard = NoticeRounds(NAMES), dict[str, Any]()
    for count, standings in enumerate(rounds):
        assert notices.is_over == (count >= 3 or heard.keys() == set(NAMES))
        if notices.is_over:
            break
        asked = {name: each for name, each in standings.items() if name in notices.unconfirmed}
        notices.record_answers(asked)
        heard |= asked
    assert notices.unconfirmed == set(NAMES) - heard.keys()
    assert notices.running == {name for name, here in heard.items() if here is not None}
    for name in NAMES:
        # Who does not say what it has may have nothing yet; who has ended has kept nothing.
        here = heard.get(name, ())
        assert notices.objects_at.get(name) == (None if here is None else set(here))

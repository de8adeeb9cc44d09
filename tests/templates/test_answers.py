"""Who gets the answer of another wrap's execution when connections break; no connection is made."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from wrap.core.answers import RENEWAL_S, Answers


def test_only_a_connection_that_breaks_may_be_renewed() -> None:
    answers = Answers[str, object, str]()
    assert answers.cancelled_in_s(is_orderly=True) == 0.0
    assert answers.cancelled_in_s(is_orderly=False) == RENEWAL_S == 2.0


def test_an_answer_that_could_not_be_sent_is_given_once() -> None:
    answers = Answers[str, object, str]()
    answers.keep(1, "answer")
    assert answers, "the replica does not end with it"
    assert answers.take(1) == "answer"
    assert answers.take(1) is None and not answers
    answers.keep(1, "another")
    answers.forget(1)
    answers.forget(1)
    assert answers.take(1) is None


STEPS = st.lists(
    st.tuples(st.sampled_from(["begin", "renew", "end"]), st.integers(0, 3), st.integers(0, 2))
)


@given(STEPS)
def test_each_execution_is_answered_over_one_connection(steps: list[tuple[str, int, int]]) -> None:
    answers, expected = Answers[int, str, str](), dict[int, str]()
    connections = ["a", "b", "c"]
    for step, execution, number in steps:
        connection = connections[number]
        if step == "begin" and execution not in expected:
            answers.begin(execution, connection)
            expected[execution] = connection
        elif step == "renew":
            assert answers.renew(execution, connection) == (execution in expected)
            expected |= {execution: connection} if execution in expected else {}
        elif step == "end" and execution in expected:
            answers.end(execution)
            del expected[execution]
        assert answers.executions == list(expected) and bool(answers) == bool(expected)
        assert {number: answers.connection_of(number) for number in expected} == expected
        assert not answers.renew(None, connection)
        for each in connections:
            awaited = [number for number, by in expected.items() if by == each]
            assert answers.lost(each) == awaited
            assert all(answers.is_unawaited(one, each) for one in awaited)

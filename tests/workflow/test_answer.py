"""Parts of an answer that vary are learned; any other difference is named."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.answer import LONGEST, ExpectedAnswer
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from tests.rows import each_row

WORKFLOW = parse_workflow({"tasks": {"first": "f", "second": "g"}})
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=12,
)


def learned(*outputs: object) -> ExpectedAnswer:
    return ExpectedAnswer.learned(b"{}", [json.dumps(output) for output in outputs])


@each_row(
    ("runs", "varies", "any_order"),
    [
        ([{"a": 1, "t": 2}, {"a": 1, "t": 3}], ["$.t"], []),
        ([{"a b": 1}, {"a b": 2}], ['$["a b"]'], []),
        ([[{"ms": n}, {"ms": n}] for n in (1, 2)], ["$[*].ms"], []),
        ([[5, {"ms": n}] for n in (1, 2)], ["$[1].ms"], []),
        ([["x", "y"], ["y", "x"]], [], ["$"]),
        ([{"s": ["x", "y"], "t": n} for n in (1, 2)], ["$.t"], []),
        ([{"s": [1, 2, 3]}, {"s": [1, 2]}], ["$.s"], []),
        ([[1, 2], {"a": 1}], ["$"], []),
        ([{"a": 1}, {"b": 1}], ["$"], []),
        ([0.1 + 0.2, 0.3], [], []),
    ],
)
def test_what_differs_between_runs_is_learned_with_its_path(runs, varies, any_order):
    expected = learned(*runs)
    assert (list(expected.varies), list(expected.any_order)) == (varies, any_order)
    for run in runs:
        expected.check(json.dumps(run), WORKFLOW)


@each_row("length", [1, LONGEST])
def test_lists_without_order_are_the_same_in_any_order_however_long(length):
    first, second = {"count": ["x" * length, {"n": 2}]}, {"count": [{"n": 2}, "x" * length]}
    expected = ExpectedAnswer.learned(b"", [json.dumps(first)], ["count"])
    expected.check(json.dumps(second), WORKFLOW)
    assert expected.differences(json.dumps({"count": ["x" * length, {"n": 3}]}))
    assert expected.differences(json.dumps({"count": ["x" * length]}))


def test_text_that_is_no_json_varies_as_a_whole():
    same, other = (ExpectedAnswer.learned(b"", ["at 1", f"at {n}"]) for n in (1, 2))
    assert (same.varies, other.varies) == ((), ("$",))


def test_a_real_difference_names_task_path_and_both_values(refused):
    expected = learned([{"n": 1, "t": 1}, {"n": 2}], [{"n": 1, "t": 2}, {"n": 2}])
    error = refused(expected.check, '[{"n": 1, "t": 9}, {"n": 3}]', WORKFLOW)
    assert (error.code, error.path, error.functions) == ("wrong-output", "$[1].n", ("second",))
    assert "'second' answered '3' and not '2'" in error.message


@each_row("other", ["[1]", "{}", "1", "no json", '{"a": true}', '{"a": "1"}'])
def test_another_shape_or_type_is_a_difference(other):
    assert learned({"a": 1}).differences(other)


def test_items_in_another_order_are_a_difference_unless_they_were_before():
    assert learned([1, 2]).differences("[2, 1]")
    assert not learned([1, 2, 3], [2, 1, 3]).differences("[3, 1, 2]")
    assert learned([1, 2, 3], [2, 1, 3]).differences("[3, 1, 1]")


def test_a_long_answer_is_known_by_its_digest():
    long = "x" * (LONGEST + 1)
    expected = ExpectedAnswer.learned(b"", [long, long])
    assert expected.output is None
    assert not expected.differences(long) and expected.differences(long + "x")
    assert ExpectedAnswer.learned(b"", [long, long + "y"]).varies == ("$",)


@given(values, values)
def test_all_runs_that_were_learned_from_are_accepted(one, other):
    expected = learned(one, other)
    assert not expected.differences(json.dumps(one))
    assert not expected.differences(json.dumps(other))


@given(values, values)
def test_what_was_the_same_in_all_runs_has_to_stay(one, other):
    same = json.dumps(one) == json.dumps(other) or (
        isinstance(one, float) and isinstance(other, float) and math.isclose(one, other)
    )
    assert same or learned(one, one).differences(json.dumps(other)) or one == other


def test_where_no_run_tells_any_answer_may_come():
    known = ExpectedAnswer.learned(b"{}", [])
    assert known.answers(b"{}") and not known.differences("anything")


def test_what_differs_in_each_of_three_runs_always_varies():
    """A cache that is filled differs once, and then no more."""
    runs = [{"id": n, "cached": n > 0, "took": {"ms": [n, n + 1]}, "same": 1} for n in range(3)]
    assert learned(*runs).always_varies == ("$.id", "$.took.ms[*]")
    assert learned(*runs[:2]).always_varies == ()
    assert ExpectedAnswer.learned(b"", ["a", "b", "c"]).always_varies == ("$",)


def test_what_always_varies_and_does_not_in_many_answers_is_told_with_its_value():
    expected = learned(*({"id": n, "draws": [n, -n], "x y": n} for n in range(1, 4)))
    alike = json.dumps({"id": 7, "draws": [5, 6], "x y": 1})
    other = json.dumps({"id": 7, "draws": [5, 7], "x y": 2})
    assert expected.constant([alike, alike]) == [("$.draws[*]", 5), ("$.id", 7), ('$["x y"]', 1)]
    assert expected.constant([alike, alike, other]) == [("$.id", 7)]
    assert expected.without(["$.id"]).constant([alike, alike, other]) == []
    assert expected.constant([alike, json.dumps({"other": 1})]) == []


def test_a_part_of_what_need_not_be_checked_need_not_vary():
    expected = learned(*({"a": {"id": n}, "ab": n} for n in range(3)))
    assert expected.without(["$.a"]).always_varies == ("$.ab",)


def test_random_numbers_that_are_the_same_in_all_answers_are_an_error_with_those_to_look_at():
    known = parse_workflow(
        {"tasks": {"first": "sample", "last": "ticket"}, "edges": [["first", "last"]]}
    )
    expected = learned(*({"ticket": n} for n in range(3)))
    with pytest.raises(ChironError) as caught:
        expected.check_varying(
            ['{"ticket": 9}'] * 5, known, lambda _: ["sample", "ticket"], "payload.json"
        )
    assert (caught.value.code, caught.value.path) == ("constant-output", "$.ticket")
    assert "task 'last' answered '9' in all 5 answers to payload.json" in caught.value.message
    assert "one of the functions sample, ticket may seed" in caught.value.message


@each_row("shape", ['{{"at": "{}/data"}}', "at {}/data"])
def test_where_the_embedded_gateway_has_an_image_is_no_difference(shape: str) -> None:
    alone, wrap = (f"/home/images/{each}" for each in ("f=1/0123456789abcdef", "w=2/" + "f" * 16))
    known = ExpectedAnswer.learned(b"", [shape.format(alone)])
    assert known.differences(shape.format(wrap)) == []
    assert len(known.differences(shape.format(f"{wrap}/more"))) == 1


def test_seconds_of_a_clock_vary_however_soon_they_are_read_again() -> None:
    """They differ by less than sums of floats that are added up in another order."""
    soon, later = [json.dumps({"at": 1.79e9 + n / 10}) for n in range(3)], '{"at": 1790000600.0}'
    read = ExpectedAnswer.learned(b"", soon)
    assert read.differences(later) == []
    apart = ExpectedAnswer.learned(b"", [json.dumps({"at": 1.79e9 + 10 * n}) for n in range(3)])
    assert apart.always_varies == ("$.at",)
    assert apart.constant(soon) == []
    assert apart.constant([later] * 3) == [("$.at", 1790000600.0)]

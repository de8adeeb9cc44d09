"""Payload templates."""

from __future__ import annotations

import copy
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.statemachine import templates
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.templates import check_expression, check_template
from tests.rows import each_row

DATA = {"flagged": 7, "vals": [0, 10, 20, 30, 40, 50]}
CONTEXT = {"DayOfWeek": "TUESDAY"}


def render(template: Any, data: Any, context: Any) -> Any:
    return templates.render(template, data, context, Random(1))


def resolve(expression: str, data: Any, context: Any) -> Any:
    return templates.resolve(expression, data, context, Random(1))


@each_row(
    ("template", "payload"),
    [
        ({}, {}),
        ({"first": 88, "second": [1, {"a": None}]}, {"first": 88, "second": [1, {"a": None}]}),
        (
            {
                "flagged": True,
                "parts": {"first.$": "$.vals[0]", "last3.$": "$.vals[-3:]"},
                "weekday.$": "$$.DayOfWeek",
                "formatted.$": "States.Format('Today is {}', $$.DayOfWeek)",
            },
            {
                "flagged": True,
                "parts": {"first": 0, "last3": [30, 40, 50]},
                "weekday": "TUESDAY",
                "formatted": "Today is TUESDAY",
            },
        ),
        ({"a.$": "$", "b": "$.flagged"}, {"a": DATA, "b": "$.flagged"}),
        ([{"a.$": "$.flagged"}, [[{"b.$": "$$"}]]], [{"a": 7}, [[{"b": CONTEXT}]]]),
        ({"a.$.$": "$.flagged", "$": 1, ".b": 2}, {"a.$": 7, "$": 1, ".b": 2}),
        ("$.flagged", "$.flagged"),
    ],
)
def test_fields_that_end_in_a_dollar_are_filled_in(template, payload):
    before = copy.deepcopy(template)
    check_template(template)
    assert render(template, DATA, CONTEXT) == payload
    assert template == before


@each_row(
    ("template", "error"),
    [
        ({"a.$": "$.nothing"}, "States.Runtime"),
        ({"a": [{"b.$": "$$.nothing"}]}, "States.Runtime"),
        ({"a.$": "$.long[?(@ =~ /.*a.{900}/)]"}, "States.ParameterPathFailure"),
        ({"a.$": "States.Array($.nothing)"}, "States.Runtime"),
        ({"a.$": "States.ArrayLength($.flagged)"}, "States.IntrinsicFailure"),
    ],
)
def test_what_cannot_be_filled_in_fails(template, error):
    check_template(template)
    with pytest.raises(StatesError) as caught:
        render(template, DATA | {"long": ["ab" * 100_000]}, CONTEXT)
    assert caught.value.name == error


@each_row(
    ("template", "reason"),
    [
        ({"a.$": 1}, r"a\.\$ has to be a string"),
        ({"a.$": {"b": 1}}, r"a\.\$ has to be a string"),
        ({"a.$": "$."}, r"a\.\$: '\$\.' is no path"),
        ({"a.$": "text"}, r"a\.\$: 'text' is no intrinsic function"),
        ({"a": [{"b": {"c.$": ""}}]}, r"c\.\$: '' is no intrinsic function"),
        ({"a.$": "$", "a": 1}, "are the same field"),
        ({"x": {"a": 1, "a.$": "$"}}, "are the same field"),
    ],
)
def test_what_is_no_template_is_refused(template, reason):
    with pytest.raises(ValueError, match=reason):
        check_template(template)


def test_an_expression_is_a_path_or_a_function():
    check_expression("$.flagged")
    check_expression("States.UUID()")
    assert resolve("$.flagged", DATA, CONTEXT) == 7
    assert resolve("States.Array($.flagged)", DATA, CONTEXT) == [7]
    with pytest.raises(ValueError, match="is no path"):
        check_expression("$flagged-")


NAMES = st.text(max_size=3).filter(lambda name: not name.endswith(".$"))
PLAIN = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
)


@given(PLAIN)
def test_what_has_no_such_fields_is_itself(template):
    check_template(template)
    assert render(template, DATA, CONTEXT) == template


@given(st.dictionaries(NAMES, PLAIN, max_size=4))
def test_a_field_for_every_field_gives_the_data(data):
    template = {f"{name}.$": "$['" + _escaped(name) + "']" for name in data}
    check_template(template)
    assert render(template, data, {}) == data


def _escaped(name: str) -> str:
    return "".join(f"\\{c}" if c in "'\\" else c for c in name)

"""What is evaluated looks at the time, and is not evaluated again for each item of a Map."""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from random import Random
from typing import Any

import pytest

from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.limit import Limited
from chiron.wrap.core.statemachine.machine import Machine
from chiron.wrap.core.statemachine.paths import check_path, evaluate
from chiron.wrap.core.statemachine.templates import render, resolve
from chiron.wrap.core.statemachine.values import dump
from chiron.wrap.core.statemachine.visits import MOST_SECONDS
from chiron.wrap.values.jsonata import Jsonata
from tests.rows import each_row

ITEMS = [{"v": number} for number in range(1000)]


class OverdueError(Exception):
    """The time is over."""


def after(looks: int) -> Callable[[], None]:
    """What raises OverdueError when it has been called so often."""
    number = count(1)

    def check() -> None:
        if next(number) > looks:
            raise OverdueError

    return check


@each_row(
    "path",
    [
        *(
            "$..nothing",
            "$[*].v",
            "$[1:]",
            "$..v",
            "$..*",
            "$[?(@.v < 0)]",
            "$[?(@.nothing)]",
            "$[?(@.v =~ /x/)]",
        ),
        *("$[0,1,2][?(@ == 5)]", "$[0][?(count($..v) == 1)]", "$[?(match(@.v, 'x'))]"),
    ],
)
def test_a_path_looks_at_the_time_for_each_value_that_it_visits(path: str) -> None:
    number = 100 if "," not in path else 3
    with Limited(after(number)), pytest.raises(OverdueError):
        evaluate(path, ITEMS if number > 3 else [{"v": 1, "w": 2}] * 4, {})


@each_row("function", ["Format('{}', $)", "ArrayContains($, 1)", "ArrayUnique(States.Array($, 1))"])
def test_a_function_looks_at_the_time_for_each_part_that_it_visits(function: str) -> None:
    value: Any = {"v": [1, 2]}
    for _ in range(20):  # 1,048,576 parts that are the same in memory
        value = [value, value]
    with Limited(after(1000)), pytest.raises(OverdueError):
        resolve(f"States.{function}", value, {}, Random(1))


@each_row("expression", ["$..v", "States.ArrayPartition($, 1)"])
def test_the_time_is_looked_at_for_each_plain_value_of_a_list(expression: str) -> None:
    with Limited(after(1000)), pytest.raises(OverdueError):
        resolve(expression, list(range(2000)), {}, Random(1))


def test_after_an_evaluation_nothing_is_limited() -> None:
    with Limited(after(0)), pytest.raises(OverdueError):
        evaluate("$[*]", ITEMS, {})
    assert len(evaluate("$[*]", ITEMS, {})) == len(ITEMS)


def machine_of(check: Callable[[], None], **state: Any) -> Machine:
    states = {"S": {"End": True, **state}}
    return Machine({"StartAt": "S", "States": states}, lambda *_: {}, Random(1), Jsonata(), check)


PASS = {"StartAt": "P", "States": {"P": {"Type": "Pass", "End": True}}}
MAP = {"Type": "Map", "ItemsPath": "$.i", "ItemProcessor": PASS, "ResultPath": None}


@each_row("state", [MAP, {**MAP, "ItemSelector": {"all.$": "$.i[*].v", "n.$": "States.UUID()"}}])
def test_a_map_looks_at_the_time_between_its_items(state: dict[str, Any]) -> None:
    machine = machine_of(after(500), **state)
    with pytest.raises(OverdueError):
        machine.start(dump({"i": ITEMS}), 0.0)


def test_items_share_what_does_not_depend_on_them() -> None:
    selector = {
        "all.$": "$.i[*].v",
        "text.$": "States.JsonToString($.i)",
        "item.$": "$$.Map.Item.Value",
        "id.$": "States.UUID()",
    }
    task = {"StartAt": "T", "States": {"T": {"Type": "Task", "Resource": "f", "End": True}}}
    state = {**MAP, "ItemSelector": selector, "ItemProcessor": task}
    begins = machine_of(lambda: None, **state).start(dump({"i": ITEMS}), 0.0).begins
    first, *others = [begin.given for begin in begins]
    assert first["all"] == list(range(len(ITEMS)))
    assert all(other["all"] is first["all"] for other in others)
    assert all(other["text"] is first["text"] for other in others)
    assert [begin.given["item"] for begin in begins] == ITEMS
    assert len({begin.given["id"] for begin in begins}) == len(ITEMS)


def test_what_a_map_evaluates_grows_with_its_items_and_not_with_their_square() -> None:
    def looks(items: list[Any]) -> int:
        state = {**MAP, "ItemSelector": {"all.$": "$.i[*].v"}}
        number = count()
        machine_of(lambda: (next(number), None)[1], **state).start(dump({"i": items}), 0.0)
        return next(number)

    assert looks(ITEMS) < 11 * looks(ITEMS[:100])


@each_row(
    "path", ["$[?(@.v =~ /(a+)+b/)]", "$[?(match(@.v, '(a|a)*b'))]", "$[?(search(@.v, '(a*)*b'))]"]
)
def test_a_regular_expression_does_not_backtrack(path: str) -> None:
    assert evaluate(path, [{"v": "a" * 50_000}, {"v": "aab"}], {}) == [{"v": "aab"}]


@each_row(
    ("path", "value", "holds"),
    [
        ("$[?(@ =~ /A.C/is)]", "a\nc", True),
        ("$[?(@ =~ /A.C/i)]", "a\nc", False),
        ("$[?(@ =~ /\\d\\w/a)]", "1a", True),
        ("$[?(@ =~ /./)]", "\ud800", True),
        ("$[?(@ =~ /é/)]", "é", True),
        ("$[?(match(@, '('))]", "(", False),
    ],
)
def test_a_regular_expression_matches(path: str, value: str, holds: bool) -> None:
    assert evaluate(path, [value], {}) == ([value] if holds else [])


@each_row("expression", ["(a", "(?=a)", r"(a)\1", "a{5000}", "(((a{99}){99}){99})"])
def test_an_expression_that_is_refused_is_no_path(expression: str) -> None:
    with pytest.raises(ValueError, match="RE2, which has no lookarounds"):
        check_path(f"$[?(@ =~ /{expression}/)]")


def test_a_text_that_is_too_long_for_its_expression_is_an_error() -> None:
    with pytest.raises(StatesError, match=r"States\.ParameterPathFailure: .* is too long"):
        evaluate("$[?(@ =~ /.*a.{900}/)]", ["ab" * 100_000], {})


def test_a_whole_number_in_a_filter_is_exact() -> None:
    assert evaluate("$[?(@ == 9007199254740993)]", [2**53, 2**53 + 1], {}) == [2**53 + 1]


@each_row("path", ["$[?(@ == 1e999)]", "$.a[" + "9" * 5000 + "]", "$[1:1" + "0" * 30])
def test_a_path_with_a_number_that_is_none_is_no_path(path: str) -> None:
    with pytest.raises(ValueError):
        check_path(path)


def test_what_is_nested_too_deep_for_a_function_is_its_failure() -> None:
    value: Any = []
    for _ in range(5000):
        value = [value]
    with pytest.raises(StatesError) as caught:
        render({"x.$": "States.Format('{}', $)"}, value, {}, Random(1))
    assert caught.value.name == "States.IntrinsicFailure"


@each_row("seconds", ["1" + "0" * 400, "100000000", "-1", "1.5", '"3"', "true", "null"])
@each_row("field", ["SecondsPath", "TimeoutSecondsPath"])
def test_seconds_that_are_none_end_in_an_error(field: str, seconds: str) -> None:
    kind = {"SecondsPath": "Wait", "TimeoutSecondsPath": "Task"}[field]
    machine = machine_of(lambda: None, Type=kind, **{field: "$.s"})
    machine.start(f'{{"s":{seconds}}}', 0.0)
    assert machine.outcome.name == "States.Runtime"


@each_row(
    ("retrier", "longest"),
    [
        ({"BackoffRate": 1e200}, MOST_SECONDS),
        ({"BackoffRate": 10**300, "JitterStrategy": "FULL"}, MOST_SECONDS),
        ({"BackoffRate": 2.0}, MOST_SECONDS),
        ({"BackoffRate": 2, "MaxDelaySeconds": 7}, 7),
    ],
)
def test_a_retry_waits_a_time_that_there_is(retrier: dict[str, Any], longest: float) -> None:
    retry = [{"ErrorEquals": ["E"], "MaxAttempts": 1100, **retrier}]
    machine = machine_of(lambda: None, Type="Task", Resource="f", Retry=retry)
    step = machine.start("1", 0.0)
    for _ in range(1100):
        step = machine.failed(step.begins[0].number, StatesError("E", ""), 0.0)
        assert 0 <= step.delays[0].seconds <= longest
        step = machine.due(step.delays[0].number, 0.0)


@each_row("text", ["[1e999]", "[" * 300 + "]" * 300, f"[{'9' * 5000}]"])
def test_json_that_has_no_place_here_fails_what_gave_it(text: str) -> None:
    machine = machine_of(lambda: None, Type="Pass")
    machine.start(text, 0.0)
    assert machine.outcome.name == "States.Runtime"
    catch = [{"ErrorEquals": ["States.ALL"], "Next": "Then"}]
    states = {
        "S": {"Type": "Task", "Resource": "f", "End": True, "Catch": catch},
        "Then": {"Type": "Pass", "Result": "caught", "End": True},
    }
    machine = Machine({"StartAt": "S", "States": states}, lambda *_: {}, Random(1), Jsonata())
    step = machine.start("1", 0.0)
    machine.ended(step.begins[0].number, text, 0.0)
    assert machine.outcome == "caught"


def test_states_that_are_nested_too_deep_end_in_an_error() -> None:
    scope: dict[str, Any] = PASS
    for number in range(300):
        state = {"Type": "Parallel", "Branches": [scope], "End": True}
        scope = {"StartAt": f"{number}", "States": {f"{number}": state}}
    machine = Machine(scope, lambda *_: {}, Random(1), Jsonata())
    machine.start("1", 0.0)
    assert machine.outcome.name == "States.Runtime"


@each_row("name", ["States.Runtime", "States.DataLimitExceeded"])
def test_no_wildcard_takes_an_error_that_ends_the_execution(name):
    caught = {"ErrorEquals": ["States.ALL"], "Next": "After"}
    task = {"Type": "Task", "Resource": "f", "Catch": [caught], "Next": "After"}
    document = {"StartAt": "Do", "States": {"Do": task, "After": {"Type": "Succeed"}}}
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata())
    (begin,) = machine.start("{}", 0.0).begins
    machine.failed(begin.number, StatesError(name, "it is so"), 0.0)
    assert isinstance(machine.outcome, StatesError) and machine.outcome.name == name


@each_row(
    "state",
    [
        MAP,
        {**MAP, "ItemsPath": "$.none"},
        {"Type": "Parallel", "Branches": [PASS], "ResultPath": None},
    ],
)
def test_states_that_end_at_once_are_not_nested(state: dict[str, Any]) -> None:
    names = [f"S{number}" for number in range(1000)]
    states = {
        name: {**state, "Next": following}
        for name, following in zip(names, [*names[1:], "Last"], strict=True)
    }
    document = {"StartAt": "S0", "States": states | {"Last": {"Type": "Succeed"}}}
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata())
    machine.start('{"i": [1, 2], "none": []}', 0.0)
    assert machine.outcome == {"i": [1, 2], "none": []}


def test_failures_that_are_caught_at_once_are_not_nested() -> None:
    fails = {"StartAt": "F", "States": {"F": {"Type": "Fail", "Error": "E"}}}
    names = [f"S{number}" for number in range(1000)]
    states = {
        name: {
            "Type": "Parallel",
            "Branches": [fails],
            "Catch": [{"ErrorEquals": ["E"], "Next": following, "ResultPath": None}],
            "End": True,
        }
        for name, following in zip(names, [*names[1:], "Last"], strict=True)
    }
    document = {"StartAt": "S0", "States": states | {"Last": {"Type": "Succeed"}}}
    machine = Machine(document, lambda *_: {}, Random(1), Jsonata())
    machine.start("7", 0.0)
    assert machine.outcome == 7


@each_row("within", [PASS, {"StartAt": "M", "States": {"M": {**MAP, "End": True}}}])
def test_a_loop_without_end_in_which_maps_end_at_once_is_an_error(within: dict[str, Any]) -> None:
    states = {
        "S": {**MAP, "ItemProcessor": within, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [{"Variable": "$", "IsPresent": True, "Next": "S"}]},
    }
    machine = Machine({"StartAt": "S", "States": states}, lambda *_: {}, Random(1), Jsonata())
    machine.start('{"i": [{"i": []}]}', 0.0)
    assert machine.outcome.name == "States.Runtime"
    assert "more than 10000 states" in machine.outcome.cause


def test_a_loop_that_waits_within_a_map_goes_on() -> None:
    task = {"StartAt": "T", "States": {"T": {"Type": "Task", "Resource": "f", "End": True}}}
    states = {
        "S": {**MAP, "ItemProcessor": task, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [{"Variable": "$", "IsPresent": True, "Next": "S"}]},
    }
    machine = Machine({"StartAt": "S", "States": states}, lambda *_: {}, Random(1), Jsonata())
    step = machine.start('{"i": [1]}', 0.0)
    for _ in range(11_000):
        step = machine.ended(step.begins[0].number, "1", 0.0)
    assert not machine.over


#: A value of few parts, each of which is there twice: it would have 2**60 leaves.
SHARED: Any = 1
NAMED: Any = 1
for _ in range(60):
    SHARED, NAMED = [SHARED, SHARED], {"a": NAMED, "b": NAMED}


@each_row(
    "function",
    [
        "States.Format('{}', $.s)",
        "States.JsonToString($.s)",
        "States.ArrayContains($.s, 1)",
        "States.ArrayContains($.few, $.s)",
        "States.ArrayUnique($.s)",
        "States.Hash($.s, 'MD5')",
        "States.JsonMerge($.n, $.n, true)",
        "States.MathAdd($.s, 1)",
    ],
)
@pytest.mark.timeout(180)
def test_what_a_function_looks_at_is_bounded_though_its_parts_are_shared(function: str) -> None:
    with pytest.raises(StatesError) as caught:
        render({"x.$": function}, {"s": SHARED, "n": NAMED, "few": [1]}, {}, Random(1))
    assert caught.value.name == "States.IntrinsicFailure"


@pytest.mark.timeout(180)
def test_a_text_that_a_loop_makes_longer_and_longer_ends_in_an_error() -> None:
    double = {"v.$": "States.Format('{}{}', $.v, $.v)"}
    states = {
        "S": {"Type": "Pass", "Parameters": double, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [{"Variable": "$", "IsPresent": True, "Next": "S"}]},
    }
    definition = {"StartAt": "S", "States": states}
    machine = Machine(definition, lambda *_: {}, Random(1), Jsonata(), longest=1000)
    machine.start('{"v": "abc"}', 0.0)
    assert machine.outcome.name == "States.IntrinsicFailure"
    assert "may have 1000 characters, not 1536" in machine.outcome.cause


@pytest.mark.timeout(180)
def test_a_text_is_split_at_any_number_of_characters() -> None:
    signs = "".join(map(chr, range(0x4E00, 0x9FFF))) * 50
    data = {"t": f"a{signs[7]}{signs[8]}b{signs[0]}", "d": signs}
    assert render({"x.$": "States.StringSplit($.t, $.d)"}, data, {}, Random(1)) == {"x": ["a", "b"]}


@pytest.mark.timeout(180)
@each_row("opened", ["$.a[?(@.b=='", "$..['"])
def test_a_quote_without_an_end_is_looked_at_once(opened: str) -> None:
    with pytest.raises(ValueError):
        check_path(opened + "\\'" * 100_000)


@pytest.mark.timeout(180)
def test_an_output_of_shared_parts_has_the_bytes_of_all_of_them() -> None:
    double = {"v.$": "States.Array($.v, $.v)"}
    states = {
        "S": {"Type": "Pass", "Parameters": double, "Next": "C"},
        "C": {"Type": "Choice", "Choices": [{"Variable": "$", "IsPresent": True, "Next": "S"}]},
    }
    definition = {"StartAt": "S", "States": states}
    machine = Machine(definition, lambda *_: {}, Random(1), Jsonata(), most_bytes=1 << 18)
    machine.start('{"v": 1}', 0.0)
    assert machine.outcome.name == "States.DataLimitExceeded"

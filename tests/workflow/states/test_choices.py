"""Which choice rules match."""

from __future__ import annotations

import fnmatch
import re
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.statemachine.choices import OPERATORS, check_operand, matches
from chiron.wrap.core.statemachine.errors import StatesError
from tests.rows import each_row

EARLY, LATE = "2016-03-14T01:59:00Z", "2016-03-14T01:59:00.5Z"
DATA = {
    "s": "b",
    "a": "a",
    "n": 5,
    "f": 5.0,
    "more": 6,
    "t": True,
    "no": False,
    "null": None,
    "early": EARLY,
    "late": LATE,
    "same": "2016-03-14T03:59:00+02:00",
    "list": [1],
    "empty": [],
    "items": [{"id": 1}],
    "log": "foo23.log",
}


def holds(variable, data=None, **rule):
    (name, operand), *_ = rule.items()
    check_operand(name, operand)
    return matches({"Variable": variable, **rule}, DATA if data is None else data, {"C": 5})


@each_row(
    ("name", "operand", "wrong"),
    [
        ("StringEquals", "b", [5, True, None, ["b"], {}]),
        ("NumericEquals", 1, [True, "1", None, [1]]),
        ("NumericLessThan", 1, [False, "0", None]),
        ("BooleanEquals", True, [1, "true", None]),
        ("BooleanEquals", False, [0, "", None, []]),
        ("TimestampEquals", EARLY, ["2016-03-14", 1457920740, None]),
        ("TimestampGreaterThan", EARLY, ["9999", "z"]),
        ("StringMatches", "*", [5, None, ["*"]]),
    ],
)
def test_values_of_another_type_do_not_match(name, operand, wrong):
    for value in wrong:
        assert holds("$", [value], **{name: operand}) is False
        assert holds("$[0]", [value], **{name: operand}) is False
        if name != "StringMatches":
            data = {"value": value, "operand": operand}
            assert holds("$.value", data, **{f"{name}Path": "$.operand"}) is False
            assert holds("$.operand", data, **{f"{name}Path": "$.value"}) is False


@each_row(
    ("variable", "rule", "expected"),
    [
        ("$.n", {"NumericEquals": 5.0}, True),
        ("$.f", {"NumericEquals": 5}, True),
        ("$.n", {"NumericEqualsPath": "$$.C"}, True),
        ("$$.C", {"NumericLessThanPath": "$.more"}, True),
        ("$.no", {"BooleanEqualsPath": "$.no"}, True),
        ("$.same", {"TimestampEquals": EARLY}, True),
        ("$.same", {"StringEquals": EARLY}, False),
        ("$.early", {"StringLessThan": "2017"}, True),
        ("$.no", {"IsNull": False}, True),
        ("$.f", {"IsNumeric": True}, True),
        ("$.t", {"IsBoolean": True}, True),
        ("$.n", {"IsPresent": True}, True),
        ("$.null", {"IsPresent": True}, True),
        ("$.no", {"IsPresent": True}, True),
        ("$.empty", {"IsPresent": True}, True),
        ("$.nothing", {"IsPresent": True}, False),
        ("$.nothing", {"IsPresent": False}, True),
        ("$.n.nothing", {"IsPresent": True}, False),
        ("$.n", {"IsPresent": False}, False),
        ("$.list[1]", {"IsPresent": True}, False),
        ("$.list[*]", {"IsPresent": True}, True),
        ("$.empty[*]", {"IsPresent": True}, False),
        ("$.nothing[*]", {"IsPresent": True}, False),
        ("$.items[?(@.id == 1)]", {"IsPresent": True}, True),
        ("$.items[?(@.id == 2)]", {"IsPresent": True}, False),
        ("$$.nothing", {"IsPresent": True}, False),
    ],
)
def test_rules_match(variable, rule, expected):
    assert holds(variable, **rule) is expected


@each_row(
    ("text", "pattern", "expected"),
    [
        ("foo23.log", "foo*.log", True),
        ("zebra.log", "*.log", True),
        ("foobar.zebra", "foo*.*", True),
        ("foo.log", "foo*.log", True),
        ("foo.log", "*", True),
        ("", "*", True),
        ("", "", True),
        ("a", "", False),
        ("foo.log", "foo", False),
        ("foo.log", "FOO*", False),
        ("a\nb", "a*b", True),
        ("ab", "a**b", True),
        ("aba", "ab*ba", False),
        ("abba", "ab*ba", True),
        ("axbxc", "a*x*x*c", True),
        ("axc", "a*x*x*c", False),
        ("a.c", "a?c", False),
        ("a[b]c", "a[b]c", True),
        ("a*c", r"a\*c", True),
        ("abc", r"a\*c", False),
        ("a\\bc", r"a\\*c", True),
        (r"a\*c", r"a\\\*c", True),
        ("größe", "gr*e", True),
    ],
)
def test_wildcards_match(text, pattern, expected):
    assert holds("$.x", {"x": text}, StringMatches=pattern) is expected


@each_row("pattern", [r"a\b", "a\\", r"\\\x*", "*\\"])
def test_an_open_escape_is_an_error(pattern):
    with pytest.raises(ValueError, match="StringMatches"):
        check_operand("StringMatches", pattern)
    with pytest.raises(ValueError, match="StringMatches"):
        matches({"Variable": "$.s", "StringMatches": pattern}, DATA, {})


@given(st.text("ab\n", max_size=12), st.text("ab*\n", max_size=8))
def test_wildcards_match_as_those_of_files(text, pattern):
    expected = re.fullmatch(fnmatch.translate(pattern), text) is not None
    assert holds("$.x", {"x": text}, StringMatches=pattern) is expected


def test_many_wildcards_take_no_time():
    begun = time.process_time()
    assert holds("$.x", {"x": "a" * 20_000}, StringMatches="*a" * 500 + "*b*") is False
    assert time.process_time() - begun < 10  # minutes, where each star were tried at each place


@each_row("name", [name for name in OPERATORS if name != "IsPresent"])
def test_a_path_that_finds_nothing_is_a_runtime_error(name):
    operand = "$.n" if name.endswith("Path") else True
    with pytest.raises(StatesError) as caught:
        matches({"Variable": "$.nothing", name: operand}, DATA, {})
    assert caught.value.name == "States.Runtime"
    if name.endswith("Path"):
        with pytest.raises(StatesError):
            matches({"Variable": "$.n", name: "$.nothing"}, DATA, {})


YES = {"Variable": "$.n", "NumericEquals": 5}
NO = {"Variable": "$.n", "NumericEquals": 6}
FAILS = {"Variable": "$.nothing", "IsNull": True}


@each_row(
    ("rule", "expected"),
    [
        ({"And": [YES, YES], "Next": "x"}, True),
        ({"And": [YES, NO], "Comment": "c"}, False),
        ({"And": [NO, FAILS]}, False),
        ({"Or": [NO, YES]}, True),
        ({"Or": [NO, NO]}, False),
        ({"Or": [YES, FAILS]}, True),
        ({"Not": YES}, False),
        ({"Not": {"Or": [NO, {"And": [NO, FAILS]}]}}, True),
        ({**YES, "Next": "x", "Comment": "c"}, True),
        ({"Comment": "c", "NumericEquals": 5, "Variable": "$.n"}, True),
    ],
)
def test_rules_are_combined_until_the_answer_is_known(rule, expected):
    assert matches(rule, DATA, {}) is expected


@each_row("rule", [{"And": [YES, FAILS]}, {"Or": [NO, FAILS]}, {"Not": FAILS}])
def test_a_rule_that_has_to_be_asked_can_fail(rule):
    with pytest.raises(StatesError, match=r"^States\.Runtime"):
        matches(rule, DATA, {})


@each_row(
    ("name", "operand"),
    [
        ("StringEquals", 1),
        ("StringMatches", None),
        ("NumericEquals", "1"),
        ("NumericEquals", True),
        ("BooleanEquals", 1),
        ("BooleanEquals", "true"),
        ("TimestampEquals", "2016-03-14"),
        ("TimestampEquals", 5),
        ("IsNull", None),
        ("IsPresent", "true"),
        ("StringEqualsPath", 1),
        ("StringEqualsPath", "text"),
        ("NumericEqualsPath", "$."),
    ],
)
def test_operands_are_checked(name, operand):
    with pytest.raises(ValueError, match=r"has to be|is no path"):
        check_operand(name, operand)

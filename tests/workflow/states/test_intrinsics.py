"""What intrinsic functions give, and what they refuse."""

from __future__ import annotations

import uuid
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.wrap.core.statemachine import intrinsics
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.intrinsics import check_call
from chiron.wrap.core.statemachine.values import Text
from tests.rows import each_row

DATA = {
    "name": "Ann",
    "template": "Hi {}, {}",
    "n": 5,
    "array": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "mixed": [1, 1.0, True, "1", None, [1], [True], {"a": 1}, {"a": 1.0}, 1],
    "object": {"a": {"a1": 1, "a2": 2}, "b": 2},
    "other": {"a": {"a3": 1, "a2": 4}, "c": 3},
    "escaped": '{"foo": "bar"}',
    "odd": [{"a,b)": 1}],
    "text": Text("no JSON"),
}
CONTEXT = {"Execution": {"Id": "run-1"}}
CHANCE = Random(1)


def call(text: str, data: Any, context: Any) -> Any:
    return intrinsics.call(text, data, context, CHANCE)


@each_row(
    ("text", "value"),
    [
        ("States.Format('Hi {}.', $.name)", "Hi Ann."),
        ("States.Format($.template, $.name, 1)", "Hi Ann, 1"),
        ("States.Format('nothing')", "nothing"),
        ("States.Format('')", ""),
        ("States.Format('{}{}', 'a', 'b')", "ab"),
        ("States.Format('{}', '{}')", "{}"),
        ("States.Format('{} {} {} {}', 1, 1.5, null, true)", "1 1.5 null true"),
        ("States.Format('{}', $.object)", "{a={a1=1, a2=2}, b=2}"),
        ("States.Format('{}', States.Array('x', 1))", "[x, 1]"),
        (r"States.Format('{}\'s \{\} \\ {}', $.name, 2)", "Ann's {} \\ 2"),
        (r"States.Format('a, b) \'(')", "a, b) '("),
        ("States.Format('{}', $$.Execution.Id)", "run-1"),
        ("States.Format('a { b } {}', 1)", "a { b } 1"),
        ("States.StringToJson($.escaped)", {"foo": "bar"}),
        (r"""States.StringToJson('\{"a": [1]\}')""", {"a": [1]}),
        ("""States.StringToJson('"text"')""", "text"),
        ("States.JsonToString($.other)", '{"a":{"a3":1,"a2":4},"c":3}'),
        ("States.JsonToString($.name)", '"Ann"'),
        ("States.JsonToString($.text)", '"no JSON"'),
        ("States.Array( )", []),
        (
            "States.Array(1, -2.5 ,1e3,null, true,false,'x' , $.n,$$.Execution.Id)",
            [1, -2.5, 1000.0, None, True, False, "x", 5, "run-1"],
        ),
        ("States.Array($['n'], $.odd[?(@['a,b)'] == 1)], $.array[1:3])", [5, DATA["odd"], [2, 3]]),
        ("States.Array(States.Array(States.Array(1)), States.Array())", [[[1]], []]),
        ("States.ArrayPartition($.array, 4)", [[1, 2, 3, 4], [5, 6, 7, 8], [9]]),
        ("States.ArrayPartition(States.Array(1, 2, 3, 4), 1.5)", [[1, 2], [3, 4]]),
        ("States.ArrayPartition(States.Array(), 4)", []),
        ("States.ArrayContains($.array, 5.0)", True),
        ("States.ArrayContains($.array, true)", False),
        ("States.ArrayContains($.mixed, $.mixed[7])", True),
        ("States.ArrayContains($.mixed, States.Array())", False),
        ("States.ArrayRange(9, 1, -4)", [9, 5, 1]),
        ("States.ArrayRange(1, 0, 1)", []),
        ("States.ArrayRange(3, 3, -1)", [3]),
        ("States.ArrayRange(0.5, 2.4, 1)", [1, 2]),
        ("States.ArrayGetItem($.array, $.n)", 6),
        ("States.ArrayGetItem($.mixed, 4)", None),
        ("States.ArrayLength($.array)", 9),
        ("States.ArrayLength(States.Array())", 0),
        ("States.ArrayUnique($.mixed)", [1, True, "1", None, [1], [True], {"a": 1}]),
        ("States.Base64Encode('Data to encode')", "RGF0YSB0byBlbmNvZGU="),
        ("States.Base64Decode('RGF0YSB0byBlbmNvZGU=')", "Data to encode"),
        ("States.Base64Encode('✓')", "4pyT"),
        ("States.Base64Encode('')", ""),
        ("States.Hash('input data', 'SHA-1')", "aaff4a450a104cd177d28d18d74485e8cae074b7"),
        ("States.Hash('', 'MD5')", "d41d8cd98f00b204e9800998ecf8427e"),
        ("States.Hash(States.Array(1, 'a'), 'MD5')", "fd4105d9312f0888af6ee470373c2c0d"),
        ("States.JsonMerge($.object, $.other, false)", {**DATA["object"], **DATA["other"]}),
        (
            "States.JsonMerge($.object, $.other, true)",
            {"a": {"a1": 1, "a2": 4, "a3": 1}, "b": 2, "c": 3},
        ),
        ("States.MathAdd(111, -1)", 110),
        ("States.MathAdd(0.5, -0.5)", 1),
        ("States.MathAdd(-1.5, 2.49)", 1),
        ("States.MathAdd(2147483647, -2147483648)", -1),
        ("States.MathRandom(3, 4)", 3),
        ("States.MathRandom(2.6, 4.4, 1)", 3),
        ("States.StringSplit('1,2,3', ',')", ["1", "2", "3"]),
        (
            "States.StringSplit('This.is+a,test=string', '.+,=')",
            ["This", "is", "a", "test", "string"],
        ),
        ("States.StringSplit(',a,,b,', ',')", ["a", "b"]),
        (r"States.StringSplit('a^b-c]d\\e', '^-]\\')", ["a", "b", "c", "d", "e"]),
        ("States.StringSplit('abc', '')", ["abc"]),
        ("States.StringSplit('', ',')", []),
    ],
)
def test_functions_give(text, value):
    check_call(text)
    found = call(text, DATA, CONTEXT)
    assert found == value and type(found) is type(value)


@each_row(
    "text",
    [
        "States.Format('{}')",
        "States.Format('a', 1)",
        "States.Format($.template, 1)",
        r"States.Format('\{\}', 1)",
        "States.Format(null)",
        "States.StringToJson('NaN')",
        "States.ArrayPartition($.array, 0.4)",
        "States.ArrayPartition($.array, true)",
        "States.ArrayRange(1, 9, 0.4)",
        "States.ArrayRange(0, 1e300, 1)",
        "States.ArrayGetItem($.array, '0')",
        "States.Base64Encode($.long)",
        "States.Base64Decode('a')",
        "States.Base64Decode('/w==')",
        "States.Base64Decode($.long)",
        "States.Hash('a', 'md5')",
        "States.Hash('a', 1)",
        "States.Hash($.long, 'MD5')",
        "States.Hash(States.Array($.half, $.half), 'MD5')",
        "States.JsonMerge($.array, $.object, false)",
        "States.MathAdd(true, 1)",
        "States.MathAdd(1, -2147483649)",
        "States.MathRandom(1, 1)",
        "States.MathRandom(2, 1)",
        "States.MathRandom(1, 2, 'seed')",
        "States.Array(States.MathAdd('1', 1))",
    ],
)
def test_what_a_function_cannot_take_fails(text):
    check_call(text)
    with pytest.raises(StatesError) as caught:
        call(text, DATA | {"long": "a" * 10_001, "half": "a" * 5_000}, CONTEXT)
    assert caught.value.name == "States.IntrinsicFailure"
    assert text in caught.value.cause


@each_row(
    "text",
    [
        "",
        "States",
        "States.UUID",
        "States.UUID (",
        "States.UUID(",
        "States.UUID())",
        "States.UUID() ",
        " States.UUID()",
        "States.Nothing()",
        "states.UUID()",
        "Own.Function(1)",
        "States.Array(1,)",
        "States.Array(,1)",
        "States.Array(1 2)",
        "States.Array(01)",
        "States.Array(.5)",
        "States.Array(+1)",
        "States.Array(1e999)",
        "States.Array(NaN)",
        "States.Array(None)",
        'States.Array("x")',
        "States.Array('x)",
        "States.Array(x)",
        "States.Array([1])",
        "States.Array($)x",
        "States.Array($.a[)",
        "States.Array($1)",
        "States.Array($.a b)",
        r"States.Array('\n')",
        r"States.Array('\')",
        "States.Array(" * 11 + ")" * 11,
        "States.Array(" + ",".join(["States.UUID()"] * 10) + ")",
        "States.Array(" * 100_000,
        "States.UUID(1)",
        "States.Format()",
        "States.StringToJson()",
        "States.JsonToString($, $)",
        "States.ArrayPartition($)",
        "States.ArrayRange(1, 2)",
        "States.MathRandom(1)",
        "States.MathRandom(1, 2, 3, 4)",
    ],
)
def test_what_is_no_function_is_refused_in_a_line(text):
    with pytest.raises(ValueError, match=r"is no|is missing|nothing may follow") as caught:
        check_call(text)
    assert str(caught.value).isprintable()


def test_ten_functions_are_not_too_many():
    check_call("States.Array(" * 10 + ")" * 10)
    check_call("States.Array(" + ",".join(["States.UUID()"] * 9) + ")")


def test_every_uuid_is_another_of_version_4():
    first, second = (call("States.UUID()", {}, {}) for _ in range(2))
    assert first != second
    assert uuid.UUID(first).version == 4 and str(uuid.UUID(first)) == first


@each_row("text", ["States.UUID()", "States.MathRandom(0, 1000000)"])
def test_equal_chances_give_equal_values(text):
    first, second, third = (intrinsics.call(text, {}, {}, Random(seed)) for seed in (1, 1, 2))
    assert first == second != third


def test_random_numbers_are_from_the_start_to_before_the_end():
    found = {call("States.MathRandom(-1, 2)", {}, {}) for _ in range(200)}
    assert found == {-1, 0, 1}


def test_a_seed_gives_the_same_random_number():
    found = {call("States.MathRandom(0, 1000000, 7)", {}, {}) for _ in range(20)}
    assert len(found) == 1


WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=50)


@given(WORDS)
def test_every_string_can_be_written(word):
    literal = "".join(f"\\{c}" if c in "'{}\\" else c for c in word)
    assert call(f"States.Format('{literal}')", {}, {}) == word
    assert call(f"States.Array('{literal}')", {}, {}) == [word]


@given(WORDS)
def test_base64_is_undone(word):
    assert call("States.Base64Decode(States.Base64Encode($))", word, {}) == word


@given(st.lists(st.integers(0, 3) | st.booleans(), max_size=12), st.integers(1, 5))
def test_the_parts_of_an_array_are_the_array(array, size):
    parts = call("States.ArrayPartition($.a, $.s)", {"a": array, "s": size}, {})
    assert [each for part in parts for each in part] == array
    assert all(len(part) == size for part in parts[:-1]) and all(parts)
    unique = call("States.ArrayUnique($)", array, {})
    assert all(call("States.ArrayContains($[0], $[1])", [unique, each], {}) for each in array)


@given(st.integers(-50, 50), st.integers(-50, 50), st.integers(-9, 9).filter(bool))
def test_a_range_has_what_is_between(first, last, step):
    found = call("States.ArrayRange($[0], $[1], $[2])", [first, last, step], {})
    assert found == list(range(first, last + (1 if step > 0 else -1), step))

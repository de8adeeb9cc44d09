"""The evaluator of JSONata: what it looks up by itself, its bounds, and the reference's own tests.

The tests of the reference are read from a checkout of github.com/jsonata-js/jsonata, where
``CHIRON_JSONATA`` names its folder.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jlens import Expression, JlensError

from chiron.wrap.values import jsonata
from chiron.wrap.values.jsonata import Jsonata, check_expression

REFERENCE = os.environ.get("CHIRON_JSONATA", "")


def value(expression: str, left_s: float = 5.0, **names: Any) -> Any:
    """What an expression gives for variables."""
    return Jsonata(lambda: left_s).evaluate(expression, names, {}, 0.0, 1)


def test_names_alone_lead_to_the_very_value() -> None:
    holder = {"a": {"b": [{"c": 10**30}]}}
    assert value(" $x.a.b ", x=holder) is holder["a"]["b"]


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$x.a.b", [1, 2]),  # a name in each item of a list
        ("$x.a[0].b", 1),
        ("$x.`a`.b", [1, 2]),
        ("$count($x.a)", 2),
        ("$größe + 1", 3),
    ],
)
def test_all_else_is_evaluated(expression: str, expected: Any) -> None:
    assert value(expression, x={"a": [{"b": 1}, {"b": 2}]}, größe=2) == expected


def test_null_is_a_value_and_nothing_is_none() -> None:
    assert value("$x[0]", x=[None]) is None
    with pytest.raises(ValueError, match="it has no value"):
        value("$x[1]", x=[None])


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("($f := function($n) { $f($n + 1) }; $f(0))", "timeout"),  # goes on for ever
        ("($f := function($n) { 1 + $f($n) }; $f(0))", "Stack overflow"),
        ("[1..9000000]", "exceed the size limit"),
        ("($s := $pad('', 1000000); [1..40].$s)", "exceed the size limit"),
        ("$replace($pad('', 1000000), ' ', $pad('', 1000000))", "exceed the size limit"),
        ("$replace($pad('', 1000000), ' ', $pad('', 1000000), 99)", "exceed the size limit"),
        ("$pad('', 90000000)", "size of the string"),
        ("$replace($pad('', 9), / /, $pad('', 100000))", "65536 characters at most"),
        ("$formatNumber(1e300, '0.' & $pad('', 100000, '0'))", "jlens cannot evaluate it"),
        ("$reduce([1..40], function($x, $y) { $x & $x }, 'aaaa')", "exceed the size limit"),
        ("$reduce([1..40], function($x, $y) { $append($x, $x) }, [1])", "exceed the size limit"),
        ("$reduce([1..60], function($x, $y) {{'a': $x, 'b': $x}}, 1)", "exceed the size limit"),
        ("$string($reduce([1..60], function($x, $y) {{'a': $x, 'b': $x}}, 1))", "size limit"),
    ],
)
def test_an_evaluation_is_bounded(expression: str, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        value(expression, left_s=0.1)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$replace('banana', 'a', 'o')", "bonono"),
        ("$replace('banana', 'a', 'o', 2)", "bonona"),
        ("$replace('banana', /(a)/, '$1$1')", "baanaanaa"),
        ("$replace('ab', /a/, function($m) { $m.match & '!' })", "a!b"),
        ("$length($replace('aaa', /a/, $pad('', 70000)))", 210_000),
        ("$length($replace($pad('', 100), / /, $pad('', 70000), 2))", 140_098),
        ("$length($replace($pad('', 100), / /, 'ab'))", 200),
        ("('banana').$replace('a', '')", "bnn"),
        ("'banana' ~> $replace('n', 'm')", "bamama"),
        ("($replace := function($x) { $x }; $replace(5))", 5),
        ("$length($replace($pad('x', 200000), /x/, 'yy'))", 200_001),
    ],
)
def test_replacing_is_that_of_jsonata(expression: str, expected: Any) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    "call",
    [
        *("$uppercase($x)", "$lowercase($x)", "$trim($x)", "$pad($x, 80000)", "$substring($x, 1)"),
        *("$substringBefore($x, 'b')", "$substringAfter($x, 'b')", "$split($x, 'b')"),
        *("$encodeUrl($x)", "$encodeUrlComponent($x)", "$base64encode($x)", "$base64decode($x)"),
        *("$replace($x, 'b', 'c')", "$replace($x, /b/, 'c')", "$map([$x], $trim)"),
    ],
)
def test_a_function_looks_at_the_time_before_a_long_text(call: str) -> None:
    left_s = iter([5.0])  # the function asks for the second time
    evaluator = Jsonata(lambda: next(left_s, 0.0))
    with pytest.raises(ValueError, match="it takes too long"):
        evaluator.evaluate(call, {"x": 20_000 * "abcd"}, {}, 0.0, 1)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("('abc').$substring(1)", "bc"),
        ("$substring('abc', -2, 1)", "b"),
        ("$substring(?, 0, 1)('abc')", "a"),
        ("'abc' ~> $substringBefore('c') ~> $uppercase", "AB"),
        ("$map([' a', 'b '], $trim)", ["a", "b"]),
        ("$split('a1b2c', /[0-9]/, 2)", ["a", "b"]),
        ("$split($pad('', 200000), / /, 2)", ["", ""]),
        ("$pad('a', -3, '#') & $pad('a', 2)", "##aa "),
        ("$exists($trim($x))", False),
        ("$exists($look)", False),
    ],
)
def test_a_function_of_texts_is_that_of_jsonata(expression: str, expected: Any) -> None:
    assert value(expression) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$distinct($x)", [1, True, "1", None, {"b": [1], "a": 2}, {"a": 2}, [1], [[1]]]),
        ("$distinct($x)[[0..1]]", [1, True]),
        ("$distinct($x.a)", 2),
        ("$distinct([1, 1])", [1]),
        ("$x ~> $distinct ~> $count", 8),
        ("$distinct(5)", 5),
    ],
)
@pytest.mark.parametrize("times", [1, 1000])
def test_each_value_is_once_among_the_distinct(expression: str, expected: Any, times: int) -> None:
    few = [1, 1.0, True, "1", None, {"b": [1], "a": 2}, {"a": 2, "b": [1]}, {"a": 2}, [1], [[1]]]
    assert value(expression, x=few * times) == expected


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ("$keys($x) ~> $count", 4),
        ("$keys([$x, {'z': 1}])[-1]", "z"),
        ("$x.$keys()[0]", "a0"),
        ("$keys([$x, 5])[3]", "d0"),
        ("$exists($keys('a'))", False),
        ("$keys({'a': 1})", "a"),
    ],
)
@pytest.mark.parametrize("times", [1, 1000])
def test_each_key_is_once_among_the_keys(expression: str, expected: Any, times: int) -> None:
    many = {f"{name}{each}": each for each in range(times) for name in "abcd"}
    assert value(expression, x=many) == (4 * times if expected == 4 else expected)


@pytest.mark.timeout(180)
def test_many_values_are_not_compared_with_each_other() -> None:
    assert value("$count($distinct($x))", x=[{"a": each} for each in range(130_000)]) == 130_000
    assert value("$count($keys($x))", x={str(each): each for each in range(130_000)}) == 130_000


#: Evaluates expressions in a process that has no more than a memory of this size to give.
BOUNDED = """
import resource, sys
from chiron.wrap.values.jsonata import Jsonata
most = 2 << 30
resource.setrlimit(resource.RLIMIT_AS, (most, most))
for expression in sys.argv[1:]:
    try:
        print(Jsonata(lambda: 60.0).evaluate(expression, {}, {}, 0.0, 1))
    except ValueError as error:
        print(error)
"""


@pytest.mark.timeout(120)
def test_all_values_together_are_bounded() -> None:
    expressions = [
        "$count($map([1..1000], function($v) {[1..130000]}))",
        "$count([1..1000].[[1..130000]])",
    ]
    command = [sys.executable, "-c", BOUNDED, *expressions]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.count("take more than 128 MiB of memory") == 2


#: An expression that jlens looks at the time in.
EVEN = "$sum($map([1..3000], function($v) { $v * 2 }))"


@pytest.mark.timeout(180)
def test_what_is_read_is_bounded_though_its_parts_are_shared(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    shared: Any = 1
    for _ in range(60):
        shared = {"a": shared, "b": shared}
    monkeypatch.setattr(jsonata, "_HELD_S", 1e-6)
    with pytest.raises(ValueError, match="what it reads is about"):
        value(f"({EVEN}; $exists($x.a))", x=shared)


def test_without_time_nothing_is_evaluated() -> None:
    with pytest.raises(ValueError, match="timeout"):
        value("($f := function($n) { $f($n + 1) }; $f(0))", left_s=-1.0)


def test_an_expression_that_cannot_be_parsed_is_told_where() -> None:
    with pytest.raises(ValueError, match="at character 4"):
        check_expression("1 +", ())


def cases() -> Iterator[Any]:
    """The cases of the reference, each with its group and place."""
    for file in sorted(Path(REFERENCE, "test/test-suite/groups").glob("*/*.json")):
        found = json.loads(file.read_text())
        for place, case in enumerate(found if isinstance(found, list) else [found]):
            if "expr-file" in case:
                case["expr"] = (file.parent / case["expr-file"]).read_text()
            yield pytest.param(case, id=f"{file.parent.name}-{file.stem}-{place}")


def answer(case: dict[str, Any]) -> Any:
    """What a case of the reference gives, as a list that is empty for nothing."""
    data = case.get("data")
    if "data" not in case and case.get("dataset"):
        file = Path(REFERENCE, "test/test-suite/datasets", f"{case['dataset']}.json")
        data = json.loads(file.read_text())
    given = None if data is None and "data" not in case else json.dumps(data)
    limits: dict[str, Any] = {}
    if "timelimit" in case:
        limits = {"timeout": case["timelimit"] / 1000, "max_depth": case["depth"]}
    found = Expression(case["expr"]).evaluate_json(given, case.get("bindings"), **limits)
    return [] if found is None else [json.loads(found)]


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same but for the last digits of floats."""
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(alike, one, other))
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(alike(one[key], other[key]) for key in one)
    if isinstance(one, float) or isinstance(other, float):
        return math.isclose(one, other, rel_tol=1e-12)
    return bool(one == other)


@pytest.mark.skipif(not REFERENCE, reason="CHIRON_JSONATA names no checkout of the reference")
@pytest.mark.parametrize("case", cases())
def test_it_answers_as_the_reference(case: dict[str, Any]) -> None:
    if "result" in case or "undefinedResult" in case:
        assert alike(answer(case), [case["result"]] if "result" in case else [])
    else:
        with pytest.raises((JlensError, UnicodeEncodeError)):
            answer(case)

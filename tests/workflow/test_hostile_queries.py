"""Whatever a machine in JSONata has in it, and whatever it is given, it ends with a named error."""

from __future__ import annotations

from itertools import count
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from test_hostile_machines import (
    CATCHERS,
    READ,
    RETRIERS,
    WRITTEN,
    check,
    ends,
    requests,
    scopes,
    texts,
)

NAMES = [
    *("$states.input", "$states.input.v", "$states.input.list", "$states.input.*", "$x", "$y"),
    *("$states.result", "$states.result.a", "$states.errorOutput", "$states.context"),
    *("$states.context.Map.Item.Value", "$states.input.**", "$states", "$nothing"),
]
LITERALS = [
    *("0", "-1", "2.5", "1e308", "9007199254740993", "1e400", '"a"', '""', '"é{}"', "null"),
    *("true", "[]", "{}", "[1..3]", "[1..2000000]", "[-1..-9]", "/(a+)+$/", "/é/i", '"[Y]-[x]"'),
    *("function($v) { $v }", "function($a, $b) { $a & $b }", "($f := function() { $f() }; $f())"),
    *('"2020-01-01T00:00:00Z"', '"#,##0.0;(#)"', "$map", "$string", '"\\ud800"'),
    *('"0." & $pad("", 99999, "0")', '"[Y,999999999]"', '"I"', '"w"', '$pad("", 99999)', "/./"),
]
FUNCTIONS = [
    *("abs", "append", "average", "base64decode", "base64encode", "boolean", "ceil"),
    *("contains", "count", "decodeUrl", "decodeUrlComponent", "distinct", "each", "encodeUrl"),
    *("encodeUrlComponent", "error", "assert", "exists", "filter", "floor", "formatBase"),
    *("formatInteger", "formatNumber", "fromMillis", "hash", "join", "keys", "length"),
    *("lookup", "lowercase", "map", "match", "max", "merge", "min", "millis", "not", "now"),
    *("number", "pad", "parse", "parseInteger", "partition", "power", "random", "range"),
    *("reduce", "replace", "reverse", "round", "shuffle", "sift", "single", "sort", "split"),
    *("spread", "sqrt", "string", "substring", "substringAfter", "substringBefore", "sum"),
    *("toMillis", "trim", "type", "uppercase", "uuid", "zip"),
]
OPERATORS = [
    *("+", "-", "*", "/", "%", "&", "=", "!=", "<", ">=", "and", "or", "in", "~>", ".", "["),
    "..",
]


def _made(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def joined(each: tuple[str, str, str]) -> str:
        left, operator, right = each
        if operator == "[":
            return f"({left})[{right}]"
        if operator == "..":
            return f"[{left}..{right}]"
        return f"({left}) {operator} ({right})"

    calls = st.tuples(st.sampled_from(FUNCTIONS), st.lists(below, max_size=3))
    return st.one_of(
        calls.map(lambda each: f"${each[0]}({', '.join(each[1])})"),
        calls.map(lambda each: f"${each[0]}({', '.join(each[1])})"),
        st.tuples(below, st.sampled_from(OPERATORS), below).map(joined),
        st.tuples(below, below).map(lambda each: f"({each[0]}){{$string($): {each[1]}}}"),
        st.tuples(below, below).map(lambda each: f"({each[0]})^(<{each[1]})"),
        st.tuples(below, below).map(lambda each: f"$map({each[0]}, function($x) {{{each[1]}}})"),
        st.tuples(below, below).map(
            lambda each: f"$reduce([1..40], function($x, $y) {{{each[0]}}}, {each[1]})"
        ),
        st.tuples(below, below, below).map(lambda each: "({} ? {} : {})".format(*each)),
        st.tuples(below, below).map(lambda each: f"($x := {each[0]}; {each[1]})"),
        st.lists(below, max_size=3).map(lambda each: f"[{', '.join(each)}]"),
        st.tuples(below, below).map(lambda each: f"{{'a': {each[0]}, 'b': {each[1]}}}"),
    )


expressions = st.recursive(st.sampled_from([*NAMES, *LITERALS]), _made, max_leaves=6).map(
    lambda each: f"{{% {each} %}}"
)
templates = expressions | st.recursive(
    expressions | st.sampled_from([None, 1, "a", True]),
    lambda below: st.lists(below, max_size=2) | st.dictionaries(st.sampled_from("pq"), below),
    max_leaves=3,
)


BATCHERS = st.fixed_dictionaries(
    {"MaxItemsPerBatch": expressions},
    optional={"MaxInputBytesPerBatch": expressions, "BatchInput": templates},
)
READERS = st.fixed_dictionaries(
    {"Resource": st.just("f"), "Arguments": templates},
    optional={"ReaderConfig": st.sampled_from(READ)},
)
PLACES = expressions | st.fixed_dictionaries({"Bucket": expressions})
WRITERS = st.fixed_dictionaries(
    {"Resource": st.just("f"), "Arguments": PLACES},
    optional={"WriterConfig": st.sampled_from(WRITTEN)},
)


@st.composite
def states(draw: Any, numbers: Any, depth: int, after: str | None) -> dict[str, Any]:
    """A state in JSONata, which goes on with the state `after`."""
    kinds = ["Pass", "Task", "Wait", *(["Choice"] if after else ["Fail", "Succeed"])]
    kind = draw(st.sampled_from([*kinds, "Map", "Parallel"] if depth else kinds))
    state: dict[str, Any] = {"Type": kind, "QueryLanguage": "JSONata"}

    def maybe(field: str, values: st.SearchStrategy[Any]) -> None:
        if draw(st.integers(0, 2)) == 0:
            state[field] = draw(values)

    if kind == "Fail":
        return state | {"Error": draw(expressions), "Cause": draw(expressions)}
    maybe("Output", templates)
    if kind == "Succeed":
        return state
    maybe("Assign", st.dictionaries(st.sampled_from("xy"), templates, max_size=2))
    if kind == "Choice":
        state["Choices"] = [{"Condition": draw(expressions), "Next": after}]
        maybe("Default", st.just(after))
        return state
    state |= {"Next": after} if after else {"End": True}
    if kind == "Wait":
        state[draw(st.sampled_from(["Seconds", "Timestamp"]))] = draw(expressions)
    if kind in ("Pass", "Wait"):
        return state
    maybe("Retry", st.sampled_from(RETRIERS).map(lambda each: [each]))
    if after and draw(st.booleans()):
        errors = draw(st.sampled_from([*CATCHERS, ["States.QueryEvaluationError"]]))
        state["Catch"] = [{"ErrorEquals": errors, "Next": after, "Output": draw(templates)}]
    if kind != "Map":
        maybe("Arguments", templates)
    if kind == "Task":
        state["Resource"] = "f"
        maybe("TimeoutSeconds", expressions)
        maybe("HeartbeatSeconds", expressions)
        maybe("Credentials", expressions.map(lambda each: {"RoleArn": each}))
    elif kind == "Parallel":
        state["Branches"] = [
            draw(scopes(states, numbers, depth - 1)) for _ in range(draw(st.integers(1, 2)))
        ]
    else:
        state["ItemProcessor"] = draw(scopes(states, numbers, depth - 1))
        maybe("Items", expressions)
        maybe("ItemSelector", templates)
        maybe("MaxConcurrency", expressions)
        if draw(st.booleans()):
            state["ItemProcessor"]["ProcessorConfig"] = {"Mode": "DISTRIBUTED"}
            maybe("ItemBatcher", BATCHERS)
            maybe("ResultWriter", WRITERS)
            if "Items" not in state:
                maybe("ItemReader", READERS)
            maybe("ToleratedFailureCount", expressions)
    return state


machines = st.tuples(
    st.builds(count).flatmap(lambda numbers: scopes(states, numbers, 2)),
    st.sampled_from([{}, {"QueryLanguage": "JSONata"}]),
).map(lambda each: each[0] | each[1])


@given(machines, requests | texts, ends)
def test_no_payload_and_no_machine_reaches_an_internal_error(
    document: dict[str, Any], request: str, answers: list[Any]
) -> None:
    check(document, request, answers)

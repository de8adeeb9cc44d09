"""Whatever a request, an answer and a machine have in them, the machine ends with a named error."""

from __future__ import annotations

import json
from functools import partial
from itertools import count
from random import Random
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from chiron.workflow.asl import parse_states
from chiron.workflow.errors import ChironError
from chiron.wrap.core.statemachine.context import execution_context
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.machine import Machine
from chiron.wrap.core.statemachine.values import dump
from chiron.wrap.core.statemachine.visits import Begin, Delay
from chiron.wrap.values.jsonata import Jsonata

LOOKS = 20_000
#: Tasks and waits of one example.
EVENTS = 60
#: Seconds that an expression of JSONata may take.
LEFT_S = 0.2

NUMBERS = [
    *("0", "-0", "-1", "1.5", "3", "1E-999", "99999999", "100000000", "1e308"),
    *("9007199254740993", "1" + "0" * 30, "9" * 400, "-" + "9" * 4300),
]
WORDS = [
    *('""', '"3"', '"a"', '"é"', '"\\ud800"', '"\\udc80"', '"\\ud83d\\ude00"', '"a{}b"', '"[1,2]"'),
    *('"9999-12-31T23:59:59Z"', '"99999-01-01T00:00:00Z"', '"0000-01-01T00:00:00Z"', '"YWI="'),
    *('"2020-01-01T00:00:60.' + "1" * 5000 + 'Z"', '"' + "a" * 300 + '"', "null", "true"),
    '"' + "[" * 300 + '"',
]
DEEP = ["[" * 195 + "]" * 195, '{"a":' * 190 + "1" + "}" * 190]
#: JSON that Python refuses, or that is too deep.
REFUSED = [
    *("1e999", "-1e999", "2e308", "9" * 4301, "[" * 201 + "]" * 201, "[" * 970 + "]" * 970),
    *("[" * 20_000 + "]" * 20_000, '{"a":' * 500 + "1" + "}" * 500),
]
#: What is no JSON.
BROKEN = [
    *("", "{", "\udcff", "no JSON: é", "NaN", "9" * 5000 + " apples", '{"a":1e999'),
    *('a b\n"x""y" z\n', '"a\n""', '{"a":1}\n[2]\n', "[1,[2],{}]", '{"v":[[1,2]]}'),
]
NAMES = ["v", "list", "i", "a", "n", "seconds", "when"]

leaves = st.sampled_from([*NUMBERS, *WORDS, *DEEP])


def _listed(texts: list[str]) -> str:
    return f"[{','.join(texts)}]"


def _object(fields: list[tuple[str, str]]) -> str:
    return "{" + ",".join(f"{json.dumps(name)}:{text}" for name, text in fields) + "}"


names = st.sampled_from(NAMES)
#: Texts of JSON, with what Python has not, and equal names in one object.
jsons = st.recursive(
    leaves,
    lambda below: (
        st.lists(below, max_size=4).map(_listed)
        | st.lists(st.tuples(names, below), max_size=4).map(_object)
    ),
    max_leaves=8,
)
requests = st.tuples(*[jsons] * len(NAMES)).map(
    lambda each: _object([*zip(NAMES, each, strict=True)])
)
refused = st.sampled_from(REFUSED).map(lambda text: f'{{"v":{text},"a":{text}}}')
texts = requests | jsons | st.sampled_from(BROKEN) | refused

HUGE = "1" + "0" * 30
FILTERS = [
    *("@.a", "@.a > 1", "@.a == $.v", "@.a =~ /(a+)+b/", "@ =~ /.*é/i", "match(@.a, $.v)"),
    *("search(@, '(a|a)*b')", "@.a == 9007199254740993", "@..a", "length(@.a) > 2", "!@.n"),
    *("@.a in [1, 'a']", "@.list contains 'a'", "count(@..*) > 3", "value(@..a) == 1"),
]
STEPS = [
    *(".v", ".a", ".list", ".i", "[0]", "[-1]", "[*]", "..a", "..*", "[1:]", "[::-1]", "['a','v']"),
    *(f"[{HUGE}]", "[9007199254740990]", "[0:9007199254740990:3]", "[0,1]", ".seconds", ".when"),
    *(f"[?({each})]" for each in FILTERS),
]
CONTEXT = [
    *("$$", "$$.Map.Item.Value", "$$.Map.Item.Index", "$$.State.EnteredTime", "$$.Execution.Input"),
    *("$$..*", "$$.nothing"),
    *("$x2", "$x1.a", "$x0", "$x2[*].v", "$nothing"),
]
paths = st.lists(st.sampled_from(STEPS), max_size=2).map(lambda steps: "$" + "".join(steps))
definite = st.lists(st.sampled_from(STEPS[:4]), max_size=2).map(lambda steps: "$" + "".join(steps))
any_path = paths | definite | st.sampled_from(CONTEXT)
LITERALS = ["0", "-1", "2.5", "'a'", "'{}'", "'é {} {}'", "true", "null", "1e308", HUGE, "9" * 400]


def _called(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    def call(name: str, *arguments: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
        drawn = st.tuples(*arguments)
        return drawn.map(lambda each: f"States.{name}({', '.join(each)})")

    deep = st.sampled_from(["true", "false", "1"])
    algorithm = st.sampled_from(["'MD5'", "'SHA-512'", "'none'", "$.v"])
    one = [
        *("StringToJson", "JsonToString", "ArrayLength", "ArrayUnique"),
        *("Base64Encode", "Base64Decode", "Array"),
    ]
    two = [
        *("ArrayPartition", "ArrayContains", "ArrayGetItem", "MathRandom", "MathAdd"),
        *("StringSplit", "Format", "Array"),
    ]
    return st.one_of(
        st.sampled_from(one).flatmap(lambda name: call(name, below)),
        st.sampled_from(two).flatmap(lambda name: call(name, below, below)),
        st.sampled_from(["ArrayRange", "MathRandom", "Format"]).flatmap(
            lambda name: call(name, below, below, below)
        ),
        call("Hash", below, algorithm),
        call("JsonMerge", below, below, deep),
        st.just("States.UUID()"),
    )


arguments = any_path | st.sampled_from(LITERALS)
expressions = any_path | _called(arguments | _called(arguments))
templates = st.recursive(
    st.dictionaries(st.sampled_from(["x.$", "y.$"]), expressions, max_size=2),
    lambda below: (
        st.dictionaries(st.sampled_from(["p", "q"]), below, max_size=2)
        | st.lists(below, max_size=2).map(lambda each: {"r": each})
    ),
    max_leaves=3,
)

COMPARED = ["String", "Numeric", "Timestamp"]
HOW = ["Equals", "LessThan", "GreaterThanEquals"]
CONSTANTS = {"String": "a*", "Numeric": 10**400, "Timestamp": "9999-12-31T23:59:59.9-23:59"}


@st.composite
def rules(draw: Any, depth: int = 2) -> dict[str, Any]:
    """A choice rule without its Next."""
    kind = draw(st.integers(0, 5 if depth else 3))
    if kind == 4:
        return {"Not": draw(rules(depth - 1))}
    if kind == 5:
        return {
            draw(st.sampled_from(["And", "Or"])): draw(
                st.lists(rules(depth - 1), min_size=1, max_size=3)
            )
        }
    variable = draw(any_path)
    if kind == 0:
        test = draw(
            st.sampled_from(["IsPresent", "IsNull", "IsNumeric", "IsTimestamp", "IsString"])
        )
        return {"Variable": variable, test: draw(st.booleans())}
    if kind == 1:
        return {"Variable": variable, "StringMatches": draw(st.sampled_from(["*", "a*b*", "é\\*"]))}
    compared = draw(st.sampled_from(COMPARED))
    name = compared + draw(st.sampled_from(HOW))
    if kind == 2:
        return {"Variable": variable, f"{name}Path": draw(any_path)}
    return {"Variable": variable, name: CONSTANTS[compared]}


RETRIERS = [
    {"ErrorEquals": ["ValueError"], "BackoffRate": 1e200, "MaxAttempts": 99_999_999},
    {"ErrorEquals": ["States.TaskFailed"], "IntervalSeconds": 99_999_999, "BackoffRate": 2},
    {"ErrorEquals": ["States.Runtime"], "MaxDelaySeconds": 5, "JitterStrategy": "FULL"},
    {"ErrorEquals": ["ValueError"], "BackoffRate": 10**300, "JitterStrategy": "FULL"},
]
CATCHERS = [["States.ALL"], ["States.Runtime"], ["States.TaskFailed"], ["States.IntrinsicFailure"]]


#: What a function that reads answers is taken for.
READ = [
    *({}, {"InputType": "JSONL"}, {"InputType": "JSON", "ItemsPointer": "/v/0"}),
    {"InputType": "CSV", "CSVHeaderLocation": "FIRST_ROW", "CSVDelimiter": "SPACE"},
    {"InputType": "CSV", "CSVHeaderLocation": "GIVEN", "CSVHeaders": ["a", "a"]},
]
#: The forms of results that are written.
WRITTEN = [{"Transformation": "FLATTEN"}, {"Transformation": "COMPACT", "OutputType": "JSONL"}]
BATCHERS = st.fixed_dictionaries(
    {"MaxItemsPerBatchPath": definite},
    optional={"MaxInputBytesPerBatchPath": definite, "BatchInput": templates},
)


READERS = st.fixed_dictionaries(
    {"Resource": st.just("f"), "Parameters": templates},
    optional={"ReaderConfig": st.sampled_from(READ)},
)
PLACES = st.fixed_dictionaries({"Bucket.$": expressions}, optional={"Prefix.$": expressions})
WRITERS = st.fixed_dictionaries(
    {"Resource": st.just("f"), "Parameters": PLACES},
    optional={"WriterConfig": st.sampled_from(WRITTEN)},
)


@st.composite
def states(draw: Any, numbers: Any, depth: int, after: str | None) -> dict[str, Any]:
    """A state, which goes on with the state `after`."""
    kinds = ["Pass", "Pass", "Task", "Wait", *(["Choice"] if after else ["Fail", "Succeed"])]
    kind = draw(st.sampled_from([*kinds, "Map", "Map", "Parallel"] if depth else kinds))
    state: dict[str, Any] = {"Type": kind}

    def maybe(field: str, values: st.SearchStrategy[Any]) -> None:
        if draw(st.integers(0, 3)) == 0:
            state[field] = draw(values)

    if kind == "Fail":
        state["CausePath"] = draw(expressions)
        maybe("ErrorPath", expressions)
        return state
    maybe("InputPath", any_path | st.none())
    if kind != "Succeed":
        maybe("Assign", st.dictionaries(st.just(f"x{depth}.$"), expressions))
    maybe("OutputPath", any_path | st.none())
    if kind == "Succeed":
        return state
    if kind == "Choice":
        state["Choices"] = [{**draw(rules()), "Next": after}]
        if draw(st.booleans()):
            state["Default"] = after
        return state
    state |= {"Next": after} if after else {"End": True}
    if kind == "Wait":
        state |= draw(
            st.sampled_from(["SecondsPath", "TimestampPath"]).flatmap(
                lambda name: st.fixed_dictionaries({name: definite})
            )
        )
        return state
    maybe("ResultPath", definite | st.none())
    maybe("ResultSelector" if kind != "Pass" else "Parameters", templates)
    if kind == "Pass":
        return state
    if draw(st.booleans()):
        state["Retry"] = [draw(st.sampled_from(RETRIERS))]
    if after and draw(st.booleans()):
        errors = draw(st.sampled_from(CATCHERS))
        state["Catch"] = [{"ErrorEquals": errors, "Next": after, "ResultPath": draw(definite)}]
    if kind == "Task":
        state["Resource"] = "f"
        maybe("Parameters", templates)
        maybe("Credentials", st.fixed_dictionaries({"RoleArn.$": expressions}))
        maybe("TimeoutSecondsPath", definite)
        maybe("HeartbeatSecondsPath", definite)
    elif kind == "Parallel":
        state["Branches"] = [
            draw(scopes(states, numbers, depth - 1)) for _ in range(draw(st.integers(1, 2)))
        ]
        maybe("Parameters", templates)
    else:
        state["ItemProcessor"] = draw(scopes(states, numbers, depth - 1))
        if draw(st.booleans()):
            state["ItemProcessor"]["ProcessorConfig"] = {"Mode": "DISTRIBUTED"}
            maybe("ItemBatcher", BATCHERS)
            maybe("ToleratedFailureCountPath", definite)
            maybe("ToleratedFailurePercentage", st.sampled_from([0, 0.5, 100]))
            maybe("ItemReader", READERS)
            maybe("ResultWriter", WRITERS)
        if "ItemReader" not in state:
            maybe("ItemsPath", any_path)
        maybe("ItemSelector", templates)
        maybe("MaxConcurrencyPath", definite)
    return state


@st.composite
def scopes(draw: Any, states: Any, numbers: Any, depth: int) -> dict[str, Any]:
    """Some of `states`, one after another."""
    called = [f"S{next(numbers)}" for _ in range(draw(st.integers(1, 3)))]
    made = {
        name: draw(states(numbers, depth, after))
        for name, after in zip(called, [*called[1:], None], strict=True)
    }
    for state in made.values():
        if state["Type"] == "Choice" and draw(st.integers(0, 3)) == 0:
            state["Default"] = called[0]  # a loop
    return {"StartAt": called[0], "States": made}


machines = st.builds(count).flatmap(lambda numbers: scopes(states, numbers, 2))
#: What tasks do: they answer a text, or raise.
ends = st.lists(texts | st.just(StatesError("ValueError", "no")), min_size=1, max_size=4)


class OverdueError(Exception):
    """The evaluation was to end."""


def outcome_of(document: dict[str, Any], request: str, answers: list[Any]) -> Any:
    """What came of it: a text, an error, None where it goes on and on."""
    # What drops an answer is no static workflow.
    dropping = {"Output": "{}"} if "QueryLanguage" in document else {"ResultPath": None}
    first = {"Type": "Task", "Resource": "f", "Next": document["StartAt"], **dropping}
    document = document | {"StartAt": "Begin", "States": {"Begin": first, **document["States"]}}
    workflow = parse_states(document, "demo")
    looks, now = count(), 1.7e9

    def check() -> None:
        if next(looks) > LOOKS:
            raise OverdueError

    machine = Machine(
        workflow.machine or {},
        partial(execution_context, "demo", "1"),
        Random(1),
        Jsonata(lambda: LEFT_S),
        check,
        longest=10_000,
    )
    step = machine.start(request, now)
    waiting: list[Begin | Delay] = []
    for number in range(EVENTS):
        waiting += [*step.begins, *step.delays]
        waiting = [each for each in waiting if each.number not in step.dropped]
        if machine.over:
            break
        each = waiting.pop(0)
        answer = answers[number % len(answers)] if number else "null"
        if isinstance(each, Delay):
            assert 0 <= each.seconds < 1e12
            step = machine.due(each.number, now)
            continue
        assert each.timeout_s is None or 1 <= each.timeout_s < 1e9
        try:
            given = dump(each.given)
            assert given.encode(errors="surrogateescape") is not None
        except StatesError as error:
            answer = error
        if isinstance(answer, StatesError):
            step = machine.failed(each.number, answer, now)
        else:
            step = machine.ended(each.number, answer, now)
    if not machine.over:
        return None
    if isinstance(machine.outcome, StatesError):
        return machine.outcome
    try:
        text = dump(machine.outcome)
    except StatesError as error:
        return error
    text.encode(errors="surrogateescape")
    return text


def check(document: dict[str, Any], request: str, answers: list[Any]) -> None:
    try:
        outcome = outcome_of(document, request, answers)
    except (ChironError, OverdueError):
        return  # the document was refused, or it took too long
    assert outcome is None or isinstance(outcome, str | StatesError)
    if isinstance(outcome, StatesError):
        assert isinstance(outcome.name, str)
        assert json.dumps([outcome.name, outcome.cause])


@given(machines, requests | texts, ends)
def test_no_payload_and_no_machine_reaches_an_internal_error(
    document: dict[str, Any], request: str, answers: list[Any]
) -> None:
    check(document, request, answers)

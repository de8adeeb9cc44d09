"""Random state machines whose answer does not depend on the order in which their tasks run.

What runs beside others does not fail, or its failure is caught outside without looking at it, or
it is alone in that. No Catch takes States.Runtime, so only what is alone fails by that. All of them
run until they end, on any input of `given`.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from random import Random
from typing import Any

from hypothesis import strategies as st

from chiron.wrap.core.statemachine.errors import StatesError, cause_of, frames_of

State = dict[str, Any]
#: States by name, the first of them, and those that are to lead on.
Block = tuple[dict[str, State], str, list[State]]

#: Handlers, each of whose answers its input determines.
HANDLERS = {
    "echo": "def handle(req):\n    return req\n",
    "picky": """
import json, zlib

def handle(req):
    if zlib.crc32(req.encode()) % 3 == 0:
        raise ValueError(f"not {len(req)} again")
    return json.dumps({"size": len(req), "half": len(req) / 2})
""",
    "text": "def handle(req):\n    return f'no JSON: \\u00e9 {len(req)}'\n",
    "count": "import zlib\n\ndef handle(req):\n    return str(zlib.crc32(req.encode()) % 7)\n",
    "listed": """
import json

def handle(req):
    return json.dumps([len(req), "a", {"b": None}])
""",
}
#: The file of a handler.
_FILE = "handler.py"
INVOKE = "arn:aws:states:::lambda:invoke"
_VALUES = [0, 3, -1.5, "5", "ab", "", None, True, [], [1, [2]], {}, {"size": 2}, {"a": {"b": 1}}]
_PATHS = ["$.v.size", "$.v[0]", "$.v.a.b", "$.nothing", "$.list[1]", "$.v"]
_RETRY = {"ErrorEquals": ["ValueError"], "IntervalSeconds": 1, "BackoffRate": 1.5}


@cache
def _handler(source: str) -> Callable[[str], str]:
    namespace: dict[str, Any] = {}
    exec(compile(source, _FILE, "exec"), namespace)  # noqa: S102  (as a wrap does)
    handle: Callable[[str], str] = namespace["handle"]
    return handle


def run(function: str, text: str) -> str:
    """What a function of `HANDLERS` answers, in this process."""
    try:
        return _handler(HANDLERS[function])(text)
    except Exception as error:
        kind, frames = type(error).__name__, frames_of(error, _own)
        raise StatesError(kind, cause_of(kind, str(error), frames)) from error


def _own(file: str) -> str | None:
    return file if file == _FILE else None


def given(order: Random) -> dict[str, Any]:
    """An input for them."""
    items = [order.choice(_VALUES) for _ in range(order.randrange(5))]
    return {"v": order.choice(_VALUES), "n": order.randrange(5), "list": items}


#: What states may do: fail by any error; by errors that a Catch takes; or not at all.
_ANY, _CAUGHT, _NONE = range(3)


def state_machine(order: Random, prefix: str = "S", *, retries: bool = True) -> dict[str, Any]:
    """A state machine whose states' names begin with `prefix`.

    Args:
        retries: whether some of its states are tried again, which takes seconds.
    """
    return _Drawing(order, prefix, retries).scope(order.randrange(5), safe=_ANY)


#: Such machines, each with an input.
state_machines = st.randoms(use_true_random=False).map(
    lambda order: (state_machine(order), json.dumps(given(order)))
)


class _Drawing:
    """One machine; its data is an object with ``v`` (anything), ``n`` (a number), ``list``."""

    def __init__(self, order: Random, prefix: str, retries: bool) -> None:
        self._order = order
        self._prefix = prefix
        self._retries = retries
        self._count = 0

    def scope(self, depth: int, *, safe: int) -> dict[str, Any]:
        """States one after another, which fail as `safe` says; the first is a Task."""
        nested = [self._nested(depth, safe)] if depth else []
        others = [self._block(depth, safe) for _ in range(self._order.randrange(2))]
        blocks = [self._task(safe), *nested, *others]
        states, start, ends = self._chain(blocks)
        for state in ends:
            state["End"] = True
        return {"StartAt": start, "States": states}

    def _chain(self, blocks: list[Block]) -> Block:
        states: dict[str, State] = {}
        for (its, _, ends), (_, following, _) in zip(blocks, [*blocks[1:], blocks[0]], strict=True):
            states |= its
            if its is not blocks[-1][0]:
                for state in ends:
                    state["Next"] = following
        return states, blocks[0][1], blocks[-1][2]

    def _block(self, depth: int, safe: int) -> Block:
        kinds = [self._task, self._pass, self._choice, self._wait, self._query]
        if safe < _NONE:
            kinds += [self._risk, self._fail]
        if depth and self._order.random() < 0.5:
            return self._nested(depth, safe)
        return self._order.choice(kinds)(safe)

    def _nested(self, depth: int, safe: int) -> Block:
        kinds = [self._loop, self._parallel, self._map, self._parallel, self._map]
        return self._order.choice(kinds)(depth - 1, safe)

    def _name(self) -> str:
        self._count += 1
        return f"{self._prefix}{self._count}"

    def _one(self, **state: Any) -> Block:
        name = self._name()
        return {name: state}, name, [state]

    def _task(self, safe: int) -> Block:
        function = self._order.choice(list(HANDLERS))
        fields = self._order.choice(
            [
                {"InputPath": "$.v"},
                {"InputPath": None},
                {"Parameters": {"v.$": "$.v", "n": 1}, "ResultSelector": {"r.$": "$"}},
                {"Parameters": {"at.$": "$$.State.Name", "try.$": "$$.State.RetryCount"}},
                {"Parameters": {"all.$": "$.list[*]", "n.$": "$.n"}, "TimeoutSeconds": 60},
            ]
        )
        state = {"Type": "Task", "Resource": function, "ResultPath": "$.v", **fields}
        if self._order.random() < 0.2:
            payload = {"FunctionName": function, "Payload.$": "$.v"}
            selector = {"got.$": "$.Payload", "status.$": "$.StatusCode"}
            state = {**state, "Resource": INVOKE, "Parameters": payload, "ResultSelector": selector}
            state.pop("InputPath", None)
        if self._retries and self._order.random() < 0.3:
            state["Retry"] = [{**_RETRY, "MaxAttempts": self._order.randrange(3)}]
        block = self._one(**state)
        if function == "picky" and (safe == _NONE or self._order.random() < 0.5):
            return self._caught(block, ["States.ALL"])
        return block

    def _caught(self, block: Block, *errors: list[str], path: str | None = "$.e") -> Block:
        """A block of one state, with a handler of its errors."""
        states, name, ends = block
        fields = {} if path is None else {"InputPath": "$.e.Error"}
        handler, first, handled = self._one(Type="Pass", **fields, ResultPath="$.v")
        states[name]["Catch"] = [
            {"ErrorEquals": each, "ResultPath": path, "Next": first} for each in errors
        ]
        return states | handler, name, [*ends, *handled]

    def _pass(self, _: int) -> Block:
        made = self._order.choice(
            [
                {"Result": self._order.choice(_VALUES)},
                {"Parameters": {"a.$": "$.v", "b": [1, {"c.$": "$.n"}]}},
                {"Parameters": {"hash.$": "States.Hash(States.JsonToString($.v), 'MD5')"}},
                {"Parameters": {"t.$": "States.Format('{} in {}', $.n, $$.State.Name)"}},
                {"Parameters": {"all.$": "$.list[*]", "of.$": "$$.StateMachine.Name"}},
                {"InputPath": "$.list"},
                {"InputPath": None},
            ]
        )
        return self._one(Type="Pass", ResultPath="$.v", **made)

    def _query(self, _: int) -> Block:
        """A state in JSONata, which assigns a variable, and a state that reads the variable."""
        variable = f"own{self._count}"
        assigned = {variable: self._order.choice(["{% $states.input.n + 1 %}", "{% [1..3] %}", {}])}
        head: State = self._order.choice(
            [
                {
                    "Type": "Task",
                    "Resource": self._order.choice(["echo", "text", "count", "listed"]),
                    "Arguments": {"v": "{% $states.input.v %}", "n": "{% $states.input.n / 2 %}"},
                    "Output": "{% $merge([$states.input, {'v': $states.result}]) %}",
                },
                {"Type": "Pass", "Output": "{% $merge([$states.input, {'v': $states.input.n}]) %}"},
                {"Type": "Wait", "Seconds": "{% $states.input.n * 0 %}"},
            ]
        )
        read = f"{{% $merge([$states.input, {{'v': [${variable}, $string($states.input.v)]}}]) %}}"
        tail = self._order.choice(
            [
                {"Parameters": {"v.$": f"${variable}"}, "ResultPath": "$.v"},
                {"QueryLanguage": "JSONata", "Output": read},
            ]
        )
        first, start, before = self._one(**head, QueryLanguage="JSONata", Assign=assigned)
        second, before[0]["Next"], ends = self._one(Type="Pass", **tail)
        rule = {"Condition": "{% $states.input.n < 3 %}", "Next": start}
        choice, name, others = self._one(Type="Choice", QueryLanguage="JSONata", Choices=[rule])
        others[0]["Default"] = before[0]["Next"]
        others[0]["Assign"] = dict.fromkeys(assigned, "{% 'default' %}")
        return {**choice, **first, **second}, name, ends

    def _wait(self, _: int) -> Block:
        how = self._order.choice([{"Seconds": 0}, {"Timestamp": "2020-01-01T00:00:00Z"}])
        return self._one(Type="Wait", **how)

    def _rule(self) -> dict[str, Any]:
        rules: list[dict[str, Any]] = [
            {"Variable": "$.n", "NumericGreaterThan": 1},
            {"Variable": "$.v", "IsString": True},
            {"Variable": "$.v", "StringMatches": "no*"},
            {"Variable": "$.v.size", "IsPresent": True},
            {"Variable": "$.n", "NumericLessThanPath": "$.n"},
        ]
        rule = self._order.choice(rules)
        other = self._order.choice(rules)
        both = [rule, other]
        return self._order.choice([rule, {"Not": rule}, {"And": both}, {"Or": both}])

    def _choice(self, safe: int) -> Block:
        """Two ways that come together again, or one of which ends here."""
        (yes, first, ends), (no, second, others) = self._task(safe), self._pass(safe)
        if self._order.random() < 0.2:
            first = self._name()
            yes, ends = {first: {"Type": "Succeed", "OutputPath": "$.v"}}, []
        name = self._name()
        rules = [{**self._rule(), "Next": first}]
        choice = {"Type": "Choice", "Choices": rules, "Default": second}
        return {name: choice, **yes, **no}, name, [*ends, *others]

    def _risk(self, safe: int) -> Block:
        """What fails for some inputs."""
        path = self._order.choice(_PATHS)
        task = {"Type": "Task", "Resource": "count", "ResultPath": "$.v"}
        query = {"Type": "Pass", "QueryLanguage": "JSONata"}
        states: list[State] = [
            {"Type": "Pass", "Result": 1, "ResultPath": path.replace("nothing", "list[3]")},
            {**task, "Parameters": {"n.$": "States.MathAdd($.n, $.v)"}},
            {**query, "Output": "{% $merge([$states.input, $states.input.v]) %}"},
        ]
        if safe == _ANY:
            states += [
                {"Type": "Pass", "Parameters": {"x.$": path}, "ResultPath": "$.v"},
                {"Type": "Pass", "InputPath": path, "ResultPath": "$.v"},
                {"Type": "Pass", "OutputPath": path},
                {**task, "ResultSelector": {"r.$": path}},
                {**task, "TimeoutSecondsPath": path},
                {**query, "Output": "{% $states.input.v + 1 %}"},
                {"Type": "Pass", "Parameters": {"n.$": "States.ArrayLength($.v)"}},
            ]
        state = self._order.choice(states)
        block = self._one(**state)
        if state["Type"] == "Task" and self._order.random() < 0.5:
            return self._caught(block, ["States.Runtime", "States.ParameterPathFailure"])
        return block

    def _fail(self, safe: int) -> Block:
        """Where some rule holds, the end."""
        name, failure = self._name(), self._name()
        following, default, ends = self._pass(safe)
        how = self._order.choice(
            [
                {"Error": "Odd", "Cause": "so it is"},
                {"Error": "ValueError"},
                {"ErrorPath": "States.Format('E{}', $.n)"},
            ]
        )
        rules = [{**self._rule(), "Next": failure}]
        choice = {"Type": "Choice", "Choices": rules, "Default": default}
        return {name: choice, failure: {"Type": "Fail", **how}, **following}, name, ends

    def _loop(self, depth: int, _: int) -> Block:
        """What is done once to three times."""
        begin, head, entry = self._one(Type="Pass", Result=0, ResultPath=f"$.i{self._count}")
        counter = begin[head]["ResultPath"]
        body = self._chain([self._block(depth, _NONE), self._pass(_NONE)])
        add = {"i.$": f"States.MathAdd({counter}, 1)"}
        count, first, counted = self._one(Type="Pass", Parameters=add, ResultPath=counter)
        take, second, taken = self._one(Type="Pass", InputPath=f"{counter}.i", ResultPath=counter)
        following, default, ends = self._pass(_NONE)
        name, times = self._name(), self._order.randint(1, 3)
        rules = [{"Variable": counter, "NumericLessThan": times, "Next": body[1]}]
        choice = {"Type": "Choice", "Choices": rules, "Default": default}
        entry[0]["Next"], counted[0]["Next"], taken[0]["Next"] = body[1], second, name
        for state in body[2]:
            state["Next"] = first
        return {**begin, **body[0], **count, **take, name: choice, **following}, head, ends

    def _parallel(self, depth: int, safe: int) -> Block:
        guarded, others = self._order.random() < 0.5, self._order.randrange(3)
        beside = _CAUGHT if guarded else _NONE
        scopes = [self.scope(depth, safe=beside) for _ in range(others)]
        exposed = self.scope(depth, safe=_CAUGHT if guarded else safe)
        scopes.insert(self._order.randrange(others + 1), exposed)
        given = {"v.$": self._order.choice(["$.n", "$.n", "$.v"]), "n": others, "list": [4, "x"]}
        fields: State = {"Branches": scopes, "Parameters": given, "ResultPath": "$.v"}
        return self._container(guarded, Type="Parallel", **fields)

    def _map(self, depth: int, safe: int) -> Block:
        guarded, most = self._order.random() < 0.5, self._order.choice([0, 1, 2])
        inside = _CAUGHT if guarded else safe if most == 1 else _NONE
        selector = {"v.$": "$$.Map.Item.Value", "n.$": "$$.Map.Item.Index", "list": [1, "y"]}
        processor = self.scope(depth, safe=inside)
        path = "$.v" if safe == _ANY and self._order.random() < 0.2 else "$.list"
        fields: State = {"ItemProcessor": processor, "ItemSelector": selector, "ItemsPath": path}
        return self._container(guarded, Type="Map", **fields, MaxConcurrency=most, ResultPath="$.v")

    def _container(self, guarded: bool, **state: Any) -> Block:
        if self._order.random() < 0.3:
            state["ResultSelector"] = {"all.$": "$[*].v"}
        block = self._one(**state)
        if not guarded:
            return block
        return self._caught(block, ["States.Runtime"], ["States.ALL"], path=None)

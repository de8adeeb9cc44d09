"""Answers that are joined to a list make valid JSON, or an error that names what is no text."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from wrap.core.errors import TaskError
from wrap.dispatch.bucket_runs import BucketRuns
from wrap.dispatch.event_objects import input_of
from wrap.values.inputs import Inputs
from wrap.values.value import Object

from chiron.workflow.buckets import parse_buckets

LEAF = parse_buckets(
    {"entry": "events", "buckets": {"events": {"trigger": "immediate", "function": "last"}}}, "test"
).buckets
WINDOW = parse_buckets(
    {
        "entry": "events",
        "buckets": {
            "events": {"trigger": "immediate", "function": "first"},
            "held": {"trigger": "by-batch-size", "size": 100, "function": "last"},
        },
        "functions": {"first": {"gives": {"each": "held"}}},
    },
    "test",
).buckets
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
).map(lambda value: json.dumps(value).encode())
ANSWERS = st.lists(
    st.sampled_from([b"", b"null", b" ", b"[]", b'["\xff"]', b"\xff", b'"\\ud800"', b'{"a": 1'])
    | st.text()
    .filter(lambda text: not set(text) & {chr(n) for n in range(0xD800, 0xE000)})
    .map(lambda text: text.encode())
    | st.binary()
    | VALUES,
    max_size=6,
)


def is_text(answer: bytes) -> bool:
    try:
        answer.decode()
    except UnicodeDecodeError:
        return False
    return True


def value_of(answer: bytes) -> Any:
    """JSON as its value, else the text."""

    def refuse(_: str) -> Any:
        raise ValueError

    try:
        return json.loads(answer.decode(), parse_constant=refuse)
    except ValueError:
        return answer.decode()


def same(found: Any, expected: Any) -> bool:
    return json.dumps(found) == json.dumps(expected)


class Run:
    """The buckets of one request, of which each function answers what it is told to."""

    def __init__(self, declared: Any) -> None:
        starts = [task for bucket in declared["buckets"].values() for task in bucket["starts"]]
        tasks = dict(enumerate(starts))
        functions = {name: number for number, name in tasks.items()}
        runtime: Any = SimpleNamespace(
            wrap=SimpleNamespace(tasks=tasks, timeouts_s={}, timeout_s=60.0),
            threads=SimpleNamespace(start=lambda _: None),
            loop=None,
        )
        self.inputs = list[bytes]()
        self.stream = BucketRuns(runtime, declared, functions)

    def answers(self, request: bytes, answers: list[bytes]) -> Any:
        """The answer to a request whose functions answer these, one after another."""
        ended = list[bool]()
        self.stream.take(Object(request), lambda _: None)
        self.stream.drain(lambda: ended.append(True))
        while not ended:
            attempt = self.stream._next()
            assert attempt is not None
            self.inputs.append(input_of(attempt.firing).data())
            output = Object(answers.pop(0) if answers else b"")
            self.stream.ended(attempt, [SimpleNamespace(output=output)])  # type: ignore[list-item]
        return self.stream.answer()


@given(ANSWERS)
@example([])
@example([b""])
def test_what_leaves_of_buckets_answer_is_valid_json(answers):
    run = Run(LEAF)
    request = json.dumps([0] * len(answers)).encode()
    expected = [each for each in answers if each not in (b"", b"null")]
    if not all(map(is_text, expected)):
        with pytest.raises(TaskError, match="is not UTF-8"):
            run.answers(request, [*answers])
        return
    found = json.loads(run.answers(request, [*answers]).data())
    assert same(found, {"last": [value_of(each) for each in expected]})


@given(ANSWERS)
def test_what_is_joined_for_a_function_of_several_is_valid_json(answers):
    data = Inputs({number: Object(each) for number, each in enumerate(answers)})
    source = [*range(len(answers))]
    if not all(map(is_text, answers)):
        with pytest.raises(TaskError, match="is not UTF-8"):
            data.resolve(source)
    elif answers:
        found = json.loads(data.resolve(source).data())
        assert same(found, [value_of(each) for each in answers])


@given(st.lists(VALUES | st.sampled_from([b'"\xff"', b"1e400", b'"\\ud800"']), max_size=6))
@example([])
@example([b'"\xff"'])
def test_items_of_a_list_that_fire_together_are_valid_json(items):
    run = Run(WINDOW)
    given = b"[" + b",".join(items) + b"]"
    if all(map(is_text, items)):
        run.answers(b"0", [given])
        for fired in run.inputs[1:]:
            json.loads(fired)
    else:
        with pytest.raises(TaskError, match="is not UTF-8"):
            run.answers(b"0", [given])

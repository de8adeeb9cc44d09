"""A finished deployment is asked for what shows that functions disturb each other."""

from __future__ import annotations

import json
import threading
from itertools import count

import pytest

from chiron.deployment import verify as module
from chiron.deployment.invoke import Answer
from chiron.deployment.verify import verify
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.documents import validate
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import parse_workflow
from chiron.workflow.payloads import Payload
from chiron.workflow.plan import Plan

WORKFLOW = parse_workflow({"tasks": {"a": "sample", "b": "ticket"}, "edges": [["a", "b"]]})
WRAP = {"name": "w", "cpus": 1, "memory_mib": 64, "mechanism": "fork"}
PLAN = validate(
    Plan,
    {
        "format": 2,
        "workflow": "w",
        "planner": "pgp",
        "wraps": [{**WRAP, "processes": [["a", "b"]]}],
        "cpus": 1,
    },
    "plan",
)
PAYLOADS = [Payload(f"{name}.json", name.encode(), 1.0) for name in "xy"]


def known(*runs):
    return [
        (each, ExpectedAnswer.learned(each.content, [run(each.content) for run in runs]))
        for each in PAYLOADS
    ]


class Target:
    """Answers with what a function makes of a request; keeps which were there at once."""

    def __init__(self, answer):
        self._answer = answer
        self.met = set()
        self._both = threading.Barrier(2)
        self._inside: list[bytes] = []

    def invoke(self, request: bytes) -> Answer:
        self._inside.append(request)
        self._both.wait(60)
        self.met.add(frozenset(self._inside))
        self._both.wait(60)
        self._inside.clear()
        self._both.wait(60)
        return Answer(self._answer(request), 1.0)


def test_each_payload_meets_itself_and_the_next_one():
    target = Target(bytes.decode)
    verify(target, WORKFLOW, PLAN, known(bytes.decode))
    assert target.met == {frozenset({b"x"}), frozenset({b"y"}), frozenset({b"x", b"y"})}


def test_answers_that_requests_at_once_mix_up_are_refused():
    requests = iter([b"x", b"x", b"y", b"y"])
    with pytest.raises(ChironError) as caught:
        verify(Target(lambda _: next(requests).decode()), WORKFLOW, PLAN, known(bytes.decode))
    assert caught.value.code == "wrong-output"


class Alone:
    """Answers with a ticket, the same from the given answer on."""

    def __init__(self, tickets):
        self._tickets = tickets
        self.asked = 0

    def invoke(self, request: bytes) -> Answer:
        self.asked += 1
        return Answer(json.dumps({"ticket": next(self._tickets)}), 1.0)


@pytest.fixture
def expected(monkeypatch):
    monkeypatch.setattr(module, "_PAUSE_S", 0)
    runs = [json.dumps({"ticket": number}) for number in range(3)]
    return [(PAYLOADS[0], ExpectedAnswer.learned(b"x", runs))]


def test_what_varied_alone_and_is_always_the_same_is_an_error(expected):
    with pytest.raises(ChironError) as caught:
        verify(Alone(iter([7] * 9)), WORKFLOW, PLAN, expected)
    assert (caught.value.code, caught.value.path) == ("constant-output", "$.ticket")
    assert "in all 3 answers to x.json" in caught.value.message
    assert "functions sample, ticket may seed" in caught.value.message


@pytest.mark.parametrize("tickets", [count(), [7, 7, 8]])
def test_what_goes_on_varying_is_none(expected, tickets):
    """A clock of seconds may stand still for all answers but the last."""
    target = Alone(iter(tickets))
    verify(target, WORKFLOW, PLAN, expected)
    assert target.asked in (2, 3)

"""Run a workflow of buckets on the events of one request, one function at a time, to its end.

The same code as in a wrap decides which triggers fire. But nothing runs concurrently here, and no
time passes: triggers that wait for a time fire when nothing else is left to run.
"""

from __future__ import annotations

import json
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from chiron.workflow.data import resolve, text_of
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from chiron.wrap.core.buckets.contents import field_of, is_nothing, items_of
from chiron.wrap.core.buckets.flow import Firing, Flow
from chiron.wrap.core.buckets.own import TriggerError
from chiron.wrap.core.buckets.triggers import Item

#: The most runs of functions for one request.
_MOST = 200_000


class Gave(NamedTuple):
    """The answer of a function's run, and its emitted objects: triples of name, group and text."""

    output: str
    emitted: Sequence[tuple[str, str | None, str]] = ()


@dataclass
class Flowed:
    """The result: each run's input and output, by names such as NAME#2, and the `output`.

    `output` is an object with the list of outputs of each function whose outputs no bucket takes.
    """

    output: str = ""
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)


class _Texts:
    def size(self, value: str) -> int:
        return len(value)

    def field(self, value: str, name: str) -> str:
        return field_of(value, name)

    def items(self, value: str) -> Sequence[str]:
        found = items_of(value)
        return [value] if found is None else [item.decode() for item in found]


def run_buckets(workflow: Workflow, request: bytes, run: Callable[[str, str], Gave]) -> Flowed:
    """Run the functions that the events in `request` fire; `run` runs a function on an input.

    Raises the errors of `run`. Raises ``endless`` for more runs than any request should need,
    ``function-failed`` for an emitted object that no bucket takes, and ``trigger-failed`` for a
    faulty user-written trigger.
    """
    try:
        return _run(workflow, request, run)
    except TriggerError as error:
        raise ChironError("trigger-failed", str(error)) from error


def _run(workflow: Workflow, request: bytes, run: Callable[[str, str], Gave]) -> Flowed:
    values, done = _Texts(), Flowed()
    flow = Flow[str, str](workflow.buckets or {}, values)
    ready = deque(flow.take(0, values.items(text_of(request)), 0.0))
    answers = {
        task.name: list[Item[str]]() for task in workflow.tasks if flow.routes.answers(task.name)
    }
    counts = Counter[str]()
    while ready or (ready := deque(flow.drain(0.0))):
        firing = ready.popleft()
        _check(flow)
        counts[firing.task] += 1
        if counts.total() > _MOST:
            raise ChironError("endless", f"more than {_MOST} functions ran for one request")
        name = f"{firing.task}#{counts[firing.task]}"
        done.inputs[name] = _input(firing)
        function = workflow.function_of(firing.task)
        gave, emitted = run(function, done.inputs[name])
        output = done.outputs[name] = str(gave)  # buckets do not pass on the content type
        for place, (called, group, text) in enumerate(emitted):
            given = None if is_nothing(text) else text
            try:
                ready += flow.emitted(firing.number, place, called, group, given, 0.0)
            except ValueError as error:
                message = f"function {function} failed: {error}"
                raise ChironError("function-failed", message, functions=[function]) from None
        value = None if is_nothing(output) else output
        if value is not None and firing.task in answers:
            answers[firing.task].append(Item(firing.number, value))
        ready += flow.ended(firing.number, value, 0.0)
    _check(flow)
    done.output = _joined(answers)
    return done


def _check(flow: Flow[str, str]) -> None:
    """Raise TriggerError for the first fault of a trigger."""
    for fault in flow.faults():
        raise fault


def _input(firing: Firing[str, str]) -> str:
    return firing.items[0].value if firing.single else _listed(firing.items)


def _listed(items: Sequence[Item[str]]) -> str:
    outputs = {str(place): item.value for place, item in enumerate(items)}
    return resolve(tuple(outputs), "", outputs)


def _joined(answers: dict[str, list[Item[str]]]) -> str:
    in_order = {name: sorted(items) for name, items in answers.items()}
    fields = (f"{json.dumps(name)}:{_listed(items)}" for name, items in in_order.items())
    return "{" + ",".join(fields) + "}"

"""The function calls of a workflow's request, and when to make each.

A route calls nothing itself, so clients with and without threads can follow the same route.
"""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Generator, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from chiron.deployment.function_error import FunctionFailedError
from chiron.workflow.data import Request, given_to, outputs_in, resolve, text_of
from chiron.workflow.errors import WorkflowFailedError
from chiron.workflow.model import Source, Task, Workflow, output_name
from chiron.workflow.plan import Plan
from chiron.workflow.running import Running
from chiron.wrap.core.statemachine.errors import StatesError
from chiron.wrap.core.statemachine.visits import Begin
from chiron.wrap.core.triggers import MOST_AT_ONCE


class TaskCall(NamedTuple):
    """A call of a task's function; the answer is the task's output.

    ``emits`` maps the function's names of further outputs in the answer to the workflow's names.
    """

    task: Task
    emits: Mapping[str, str] = MappingProxyType({})


class CallRequest(NamedTuple):
    """A call to make now; it has failed if there is no answer after `timeout_s`, if given."""

    function: str
    body: bytes
    timeout_s: float | None = None


#: Begins a call; returns a future-like object, whose `result` returns the answer or raises.
StartCall = Callable[[CallRequest], Any]
#: Yields the running calls and the seconds to wait for the first of them to end, or None for no
#: limit. Is sent the calls that have ended, possibly none. Returns the workflow's answer.
Steps = Generator[tuple[Collection[Any], float | None], Collection[Any], str]


class Route(ABC):
    """The calls of a client for a request."""

    #: The most calls that run at the same time.
    most_at_once: int
    is_one_call = False

    @abstractmethod
    def follow(self, request: bytes, begin: StartCall) -> Steps:
        """Begin a request's calls and wait for them; raises their errors, ``workflow-failed``."""


@dataclass(frozen=True)
class StagedRoute(Route):
    """The calls stage by stage, and the source of the workflow's output among their answers.

    ``fail`` has the error and the cause if the workflow ends in a Fail state, which the client
    raises.
    """

    stages: Sequence[Sequence[TaskCall]]
    output: Source
    fail: Sequence[str] | None = None

    @property
    def most_at_once(self) -> int:  # type: ignore[override]
        return max(map(len, self.stages))

    @property
    def is_one_call(self) -> bool:  # type: ignore[override]
        return sum(map(len, self.stages)) == 1

    def follow(self, request: bytes, begin: StartCall) -> Steps:
        text, outputs = text_of(request), dict[str, str]()
        for stage in self.stages:
            begun = {
                begin(
                    CallRequest(call.task.function, Request(given_to(call.task, text, outputs)))
                ): call
                for call in stage
            }
            while begun:
                for ended in (yield begun.keys(), None):
                    call = begun.pop(ended)
                    outputs |= outputs_in(ended.result(), call.task.name, call.emits)
        if self.fail is not None:
            raise WorkflowFailedError(*self.fail)
        return resolve(self.output, text, outputs)


@dataclass(frozen=True)
class StateMachineRoute(Route):
    """The calls that a state machine asks for: it calls a task as soon as the task can begin.

    The functions of ``workflow`` are the deployed functions of its tasks.
    """

    workflow: Workflow
    most_at_once = MOST_AT_ONCE

    def follow(self, request: bytes, begin: StartCall) -> Steps:
        running, begun = Running(self.workflow, request), dict[Any, Begin]()
        while not running.over:
            while running.ready and len(begun) < self.most_at_once:
                task = running.begin()
                body = Request(running.given(task))
                function = self.workflow.function_of(task.task)
                begun[begin(CallRequest(function, body, task.timeout_s))] = task
            left_s = None if running.due == math.inf else max(0.0, running.due - time.time())
            for ended in (yield begun.keys(), left_s):
                _record(running, begun.pop(ended), ended)
            if running.due <= time.time():
                running.passed(running.wait())
        return _answer(running.outcome)


def _record(running: Running, task: Begin, call: Any) -> None:
    try:
        output = call.result()
    except FunctionFailedError as error:
        running.failed(task, error.failure)
    else:
        running.ended(task, output)


def _answer(outcome: str | StatesError) -> str:
    """Return the output; if a function failed, raise its error."""
    if isinstance(outcome, str):
        return outcome
    if isinstance(outcome.__cause__, FunctionFailedError):
        raise outcome.__cause__
    raise WorkflowFailedError(outcome.name, outcome.cause)


def route_of(plan: Plan, workflow: Workflow) -> Route:
    """Return the route of `plan`: a call of the entry wrap, or of each task if the client calls."""
    if plan.orchestrator != "client":
        return entry_route(plan.wraps[0].name)
    wrap_of = {wrap.tasks[0]: wrap.name for wrap in plan.wraps}
    if workflow.machine is not None:
        return state_machine_route(workflow.name, workflow.machine, wrap_of)
    stages = [
        [
            TaskCall(
                replace(workflow.by_name[task], function=wrap_of[task]),
                {output_name(name): name for name in workflow.emitted.get(task, ())},
            )
            for task in stage
        ]
        for stage in workflow.stages
    ]
    failure = workflow.failure
    return StagedRoute(stages, workflow.output, (failure.error, failure.cause) if failure else None)


def state_machine_route(
    name: str, machine: dict[str, Any], function_of: Mapping[str, str]
) -> Route:
    """Return the route of the workflow `name`; `function_of` maps its tasks to their functions."""
    tasks = tuple(Task(task, function, None) for task, function in function_of.items())
    return StateMachineRoute(Workflow(name, tasks, None, machine=machine))


def entry_route(entry: str) -> Route:
    """Return the route through the wrap that runs the whole workflow."""
    return StagedRoute([[TaskCall(Task(entry, entry, None))]], entry)

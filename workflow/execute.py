"""Runs a workflow that decides while it runs, one task at a time.

The state machine is interpreted as in a wrap, by the same code; but here nothing runs at the same
time, and no time that is waited for passes.
"""

from __future__ import annotations

import heapq
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from workflow.data import text_of
from workflow.errors import ChironError
from workflow.model import Workflow
from workflow.states.errors import StatesError
from workflow.states.machine import Begin, Delay, Machine, Step, timestamp
from workflow.states.values import dump, parse
from workflow.trace import Instance

#: Runs a function on an input; its output. Raises StatesError where it fails.
Run = Callable[[str, str], str]
#: Instances that one execution may have: beyond that its loops are taken for endless.
MOST = 200_000


@dataclass
class Execution:
    """What came of one: `output` or `error`; and what each instance got and gave, by its name."""

    output: str | None = None
    error: StatesError | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    trace: list[Instance] = field(default_factory=list)


def execute(workflow: Workflow, request: bytes, run: Run) -> Execution:
    """Run the state machine of `workflow` on `request`, one task at a time.

    A task that takes longer than its TimeoutSeconds fails when it has ended.

    Raises ``endless`` after `MOST` instances.
    """
    return _Executing(workflow, run).run(request)


class _Executing:
    def __init__(self, workflow: Workflow, run: Run) -> None:
        self._workflow = workflow
        self._run = run
        self._done = Execution()
        self._machine = Machine(workflow.machine or {}, self._context)
        self._counts = Counter[str]()
        self._places: dict[int, int] = {}
        self._ready = deque[Begin]()
        self._delays: list[tuple[float, int, Delay]] = []
        self._skipped_s = 0.0

    def _now(self) -> float:
        return time.time() + self._skipped_s

    def _context(self, given: Any, now: float) -> Mapping[str, Any]:
        ident, name = str(uuid4()), self._workflow.name
        execution = {"Id": ident, "Name": ident, "Input": given, "StartTime": timestamp(now)}
        return {"Execution": execution, "StateMachine": {"Id": name, "Name": name}}

    def run(self, request: bytes) -> Execution:
        machine, done = self._machine, self._done
        step = machine.start(parse(text_of(request)), self._now())
        while not machine.over:
            self._drop(set(step.dropped))
            self._ready += step.begins
            for delay in step.delays:
                entry = (self._now() + delay.seconds, delay.number, delay)
                heapq.heappush(self._delays, entry)
            step = self._begun(self._ready.popleft()) if self._ready else self._waited()
            if len(done.trace) > MOST:
                message = f"more than {MOST} tasks ran for one request: does a loop of it end?"
                raise ChironError("endless", message, path="States")
        if isinstance(machine.outcome, StatesError):
            done.error = machine.outcome
        else:
            done.output = dump(machine.outcome)
        return done

    def _drop(self, numbers: set[int]) -> None:
        if numbers:
            self._ready = deque(each for each in self._ready if each.number not in numbers)
            self._delays = [each for each in self._delays if each[1] not in numbers]
            heapq.heapify(self._delays)

    def _begun(self, begin: Begin) -> Step:
        done, machine = self._done, self._machine
        self._counts[begin.task] += 1
        name = f"{begin.task}#{self._counts[begin.task]}"
        text = done.inputs[name] = dump(begin.given)
        started = time.monotonic()
        try:
            output = self._run(self._workflow.function_of(begin.task), text)
            if begin.timeout_s is not None and time.monotonic() - started > begin.timeout_s:
                raise StatesError("States.Timeout", f"{begin.task} did not answer in time")
        except StatesError as error:
            self._note(begin, Instance(task=begin.task, after=self._after(begin), failed=True))
            return machine.failed(begin.number, error, self._now())
        done.outputs[name] = output
        self._note(begin, Instance(task=begin.task, after=self._after(begin)))
        return machine.ended(begin.number, parse(output), self._now())

    def _waited(self) -> Step:
        due, number, delay = heapq.heappop(self._delays)
        self._note(delay, Instance(after=self._after(delay), wait_ms=delay.seconds * 1000))
        self._skipped_s += max(0.0, due - self._now())
        return self._machine.due(number, self._now())

    def _after(self, each: Begin | Delay) -> tuple[int, ...]:
        return tuple(sorted(self._places[number] for number in each.after))

    def _note(self, each: Begin | Delay, instance: Instance) -> None:
        self._places[each.number] = len(self._done.trace)
        self._done.trace.append(instance)

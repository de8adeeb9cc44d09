"""Run a state machine, one task at a time.

The same code as in a wrap interprets the machine. But nothing runs concurrently here, and waits end
at once.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from types import MappingProxyType

from chiron.workflow.model import Workflow
from chiron.workflow.running import GivenContext, Running
from chiron.workflow.trace import Instance
from chiron.wrap.core.statemachine.errors import StatesError, failure_of
from chiron.wrap.core.statemachine.visits import Begin, Delay

#: Runs a function on an input and returns its output; raises StatesError if it fails.
Run = Callable[[str, str], str]


@dataclass
class Execution:
    """The result of an execution: `output` or `error`, and the data of each instance by name."""

    output: str | None = None
    error: StatesError | None = None
    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    trace: list[Instance] = field(default_factory=list)


def execute(
    workflow: Workflow,
    request: bytes,
    run: Run,
    context: GivenContext = MappingProxyType({}),
    *,
    dropped: bool = False,
) -> Execution:
    """Run the state machine of `workflow` on `request`, one task at a time.

    `context` is passed to `Running`. With `dropped`, tasks also run that were ready when another
    task's failure dropped them: in a wrap they would have begun by then.

    A task that takes longer than its TimeoutSeconds fails when it ends.

    Raises ``endless`` as `chiron.workflow.running.Running` does.
    """
    return _Executing(workflow, run, dropped).run(request, context)


class _Executing:
    def __init__(self, workflow: Workflow, run: Run, dropped: bool) -> None:
        self._workflow = workflow
        self._run = run
        self._dropped = dropped
        self._done = Execution()
        self._counts = Counter[str]()
        self._places: dict[int, int] = {}
        self._skipped_s = 0.0

    def _now(self) -> float:
        return time.time() + self._skipped_s

    def run(self, request: bytes, context: GivenContext) -> Execution:
        running, done = Running(self._workflow, request, self._now, context), self._done
        while not running.over:
            if running.ready:
                self._begun(running, running.begin())
            else:
                self._skipped_s += max(0.0, running.due - self._now())
                delay = running.wait()
                wait_ms = delay.seconds * 1000
                self._note(delay, Instance(after=self._after(delay), wait_ms=wait_ms))
                running.passed(delay)
        outcome = running.outcome
        if isinstance(outcome, StatesError):
            done.error = outcome
        else:
            done.output = outcome
        return done

    def _begun(self, running: Running, begin: Begin) -> None:
        outcome = self._outcome(running, begin)
        if isinstance(outcome, StatesError):
            dropped = running.failed(begin, outcome)
        else:
            dropped = running.ended(begin, outcome)
        if self._dropped:
            for each in dropped:
                self._outcome(running, each, dropped=True)

    def _outcome(
        self, running: Running, begin: Begin, *, dropped: bool = False
    ) -> str | StatesError:
        """Run a task; return its answer, or the error with which it fails."""
        done = self._done
        self._counts[begin.task] += 1
        name = f"{begin.task}#{self._counts[begin.task]}"
        instance = Instance(task=begin.task, after=self._after(begin), dropped=dropped)
        started = time.monotonic()
        try:
            text = done.inputs[name] = running.given(begin)
            output = self._run(self._workflow.function_of(begin.task), text)
            if begin.timeout_s is not None and time.monotonic() - started > begin.timeout_s:
                raise failure_of("timeout", f"{begin.task} did not answer in time")
        except StatesError as error:
            is_late = begin.timeout_s is not None and error.name == "States.Timeout"
            wait_ms = 1000 * (begin.timeout_s or 0.0) if is_late else 0.0
            self._note(begin, instance.model_copy(update={"wait_ms": wait_ms, "failed": True}))
            return error
        done.outputs[name] = output
        self._note(begin, instance)
        return output

    def _after(self, each: Begin | Delay) -> tuple[int, ...]:
        return tuple(sorted(self._places[number] for number in each.after))

    def _note(self, each: Begin | Delay, instance: Instance) -> None:
        self._places[each.number] = len(self._done.trace)
        self._done.trace.append(instance)

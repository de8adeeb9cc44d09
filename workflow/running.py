"""One execution of a state machine for a driver that runs its tasks: ready tasks, and timers.

Like the machine, it performs no I/O and never waits: the driver asks for tasks and reports ends.
"""

from __future__ import annotations

import heapq
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from random import SystemRandom
from types import MappingProxyType
from typing import Any
from uuid import uuid4

from chiron.workflow.data import Typed, text_of
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from chiron.wrap.core.statemachine.context import Context, execution_context
from chiron.wrap.core.statemachine.errors import StatesError, of_task
from chiron.wrap.core.statemachine.machine import Machine
from chiron.wrap.core.statemachine.values import Text, dump
from chiron.wrap.core.statemachine.visits import Begin, Delay, Step
from chiron.wrap.values.jsonata import Jsonata

#: The content type of values that a machine passes on.
_JSON = "application/json"

#: Fields of the context object, by section.
GivenContext = Mapping[str, dict[str, Any]]
#: The most tasks and waits of an execution: beyond, its loops count as endless.
MOST = 200_000


class Running:
    """An execution of `workflow`, begun with `request`.

    Args:
        now: returns the time of day in seconds since 1970.
        context: fields that override those of an execution's context object, section -> field ->
            value; or a `Context`, which replaces the object.
    """

    def __init__(
        self,
        workflow: Workflow,
        request: bytes,
        now: Callable[[], float] = time.time,
        context: GivenContext = MappingProxyType({}),
    ) -> None:
        ident = str(uuid4())

        def context_of(given: Any, began: float) -> dict[str, Any]:
            if isinstance(context, Context):
                return context
            made = execution_context(workflow.name, ident, given, began)
            return made | {name: made.get(name, {}) | fields for name, fields in context.items()}

        self._machine = Machine(
            workflow.machine or {}, context_of, SystemRandom(), evaluator=Jsonata()
        )
        self._now = now
        self._request = text_of(request)
        self._delays: list[tuple[float, int, Delay]] = []
        self._count = 0
        #: The ready tasks, in the order in which they became ready.
        self.ready = deque[Begin]()
        self._follow(self._machine.start(self._request, now()))

    @property
    def over(self) -> bool:
        """Whether the execution has ended."""
        return self._machine.over

    @property
    def outcome(self) -> str | StatesError:
        """The output of the ended execution, or the error with which it failed."""
        outcome = self._machine.outcome
        try:
            return outcome if isinstance(outcome, StatesError) else dump(outcome)
        except StatesError as error:
            return StatesError(error.name, f"the output: {error.cause}")

    @property
    def due(self) -> float:
        """The time of the next timer; infinite without a timer."""
        return self._delays[0][0] if self._delays else math.inf

    def begin(self) -> Begin:
        """Remove and return the next ready task, which begins now."""
        self._counted()
        return self.ready.popleft()

    def given(self, begin: Begin) -> str:
        """Return the input of a task; the unchanged request if that is its input.

        Raises StatesError, which fails the task, if the input cannot be written.
        """
        try:
            text = dump(begin.given)
        except StatesError as error:
            raise of_task("the input", error) from None
        if begin.given is self._machine.given:
            return self._request
        return Typed(text, "" if isinstance(begin.given, Text) else _JSON)

    def ended(self, begin: Begin, output: str) -> list[Begin]:
        """Report the answer of a task; return the ready tasks that are dropped as a result."""
        return self._follow(self._machine.ended(begin.number, output, self._now()))

    def failed(self, begin: Begin, error: StatesError) -> list[Begin]:
        """Report the failure of a task; return the ready tasks that are dropped as a result."""
        return self._follow(self._machine.failed(begin.number, error, self._now()))

    def wait(self) -> Delay:
        """Remove and return the next timer; `passed` reports its end."""
        self._counted()
        return heapq.heappop(self._delays)[2]

    def passed(self, delay: Delay) -> None:
        """Report the end of a timer."""
        self._follow(self._machine.due(delay.number, self._now()))

    def _follow(self, step: Step) -> list[Begin]:
        numbers = set(step.dropped)
        dropped = [each for each in self.ready if each.number in numbers] if numbers else []
        if numbers:
            self.ready = deque(each for each in self.ready if each.number not in numbers)
            self._delays = [each for each in self._delays if each[1] not in numbers]
            heapq.heapify(self._delays)
        self.ready += step.begins
        for delay in step.delays:
            heapq.heappush(self._delays, (self._now() + delay.seconds, delay.number, delay))
        return dropped

    def _counted(self) -> None:
        self._count += 1
        if self._count > MOST:
            message = f"more than {MOST} tasks ran for one request: does a loop of it end?"
            raise ChironError("endless", message, path="States")

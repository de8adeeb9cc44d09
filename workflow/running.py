"""One execution of a state machine, for what runs its tasks: which are ready, which time is next.

As the machine itself this waits for nothing: it is asked what can begin, and told what has ended.
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

#: What a machine calls values that it hands on.
_JSON = "application/json"

#: Fields of the context object, by their sections.
GivenContext = Mapping[str, dict[str, Any]]
#: Tasks and waits that one execution may have: beyond that its loops are taken for endless.
MOST = 200_000


class Running:
    """An execution of `workflow`, which has begun with `request`.

    Args:
        now: the time of day in seconds since 1970.
        context: fields of the context object that are not as of an execution, section -> field ->
            value; or a `Context`, which is the whole.
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
        #: The tasks that can begin, in the order in which they became ready.
        self.ready = deque[Begin]()
        self._follow(self._machine.start(self._request, now()))

    @property
    def over(self) -> bool:
        """Whether it has ended."""
        return self._machine.over

    @property
    def outcome(self) -> str | StatesError:
        """What it has ended with: its output, or the error that it failed with."""
        outcome = self._machine.outcome
        try:
            return outcome if isinstance(outcome, StatesError) else dump(outcome)
        except StatesError as error:
            return StatesError(error.name, f"the output: {error.cause}")

    @property
    def due(self) -> float:
        """When the next time has passed that it waits for; infinite where it waits for none."""
        return self._delays[0][0] if self._delays else math.inf

    def begin(self) -> Begin:
        """The next task that is ready: it begins now."""
        self._counted()
        return self.ready.popleft()

    def given(self, begin: Begin) -> str:
        """What a task gets: the request as it came, where that is its input.

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
        """A task has answered; the tasks that were ready and are dropped by that."""
        return self._follow(self._machine.ended(begin.number, output, self._now()))

    def failed(self, begin: Begin, error: StatesError) -> list[Begin]:
        """A task has failed; the tasks that were ready and are dropped by that."""
        return self._follow(self._machine.failed(begin.number, error, self._now()))

    def wait(self) -> Delay:
        """The next time that it waits for: `passed` says that it is over."""
        self._counted()
        return heapq.heappop(self._delays)[2]

    def passed(self, delay: Delay) -> None:
        """A time has passed."""
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

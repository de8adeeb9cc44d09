"""Workflows that decide at run time: numbered instances of tasks, and where each instance runs.

A task can run several times in an execution: in a loop, for the items of a Map, after a failure.
The number of an instance modulo the number of tasks of the workflow is the number of its task.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple

from wrap.core.errors import TaskError, workflow_failed
from wrap.core.program import MAIN, Call, Component, Key, Place, Program, Source, Step, given_to
from wrap.core.statemachine import visits as states
from wrap.core.statemachine.context import execution_context
from wrap.core.statemachine.errors import StatesError, failure_of, of_task
from wrap.core.statemachine.limit import LONGEST
from wrap.core.statemachine.values import Text, dump
from wrap.core.triggers import MOST_AT_ONCE

if TYPE_CHECKING:
    from wrap.core.statemachine.chance import Chance
    from wrap.core.statemachine.expressions import Evaluator
    from wrap.core.wrap_spec import Entry, Wrap


class World(NamedTuple):
    """The functions outside the core that a state machine uses."""

    #: Returns the time of day, in seconds since 1970.
    today: Callable[[], float]
    #: Returns the time in seconds, on the clock of the deadlines.
    clock: Callable[[], float]
    chance: Chance
    #: Returns a JSONata evaluator, from a function that returns the seconds left.
    evaluator: Callable[[Callable[[], float]], Evaluator]
    #: Returns an object, from a text and whether the text is JSON.
    object_of: Callable[[str, bool], Any]


class Patience:
    """Ends evaluations. A reference to the execution would delay freeing its values."""

    def __init__(self, deadline: float, clock: Callable[[], float]) -> None:
        self._deadline = deadline
        self._clock = clock
        #: When the evaluation of the current event fails its state.
        self._until = deadline

    def left_s(self) -> float:
        """Return the seconds until the deadline."""
        return self._deadline - self._clock()

    def renew(self) -> None:
        """Grant the current event half of the time that is left."""
        now = self._clock()
        self._until = now + (self._deadline - now) / 2

    def look(self) -> None:
        """Raise TaskError after the deadline.

        Raise StatesError if an event has used half of the time that was left before it. A Catch can
        handle that error: it has the other half.
        """
        now = self._clock()
        if now >= self._deadline:
            message = "the request's time was over while expressions of the workflow were evaluated"
            raise TaskError("timeout", message, status=504)
        if now >= self._until:
            self.renew()
            half = "half of the request's time was over"
            cause = f"{half} while expressions of the workflow were evaluated"
            raise StatesError("States.Timeout", cause)


class Placement(Program):
    """Assigns places to the instances of one execution. Its scope is the instances placed now.

    Args:
        gives: the instances whose objects are wanted elsewhere.
    """

    decides = True
    is_whole = False
    live = False
    components: Mapping[int, Component] = {}
    in_order: frozenset[int] = frozenset()
    sources: Mapping[int, Source] = {}
    users: Mapping[Key, Sequence[int]] = {}

    def __init__(self, wrap: Wrap, gives: Collection[int] = ()) -> None:
        self.wrap = wrap
        self.gives = gives
        self.place_of: dict[int, Place] = {}
        self.timeouts_s: dict[int, float] = {}
        self.calls_wraps = bool(wrap.remotes)
        self.processes = frozenset(range(1, len(wrap.processes)))
        places = chain.from_iterable(wrap.places_of.values())
        self._running: dict[Place, int] = dict.fromkeys(places, 0)
        self._waiting: dict[int, deque[int]] = {}

    @property
    def part(self) -> Placement:
        """The placement itself is the scope."""
        return self

    def again(self, process: int, lost: Collection[int], held: Container[Key]) -> Call:
        """Return the first call to a replacement worker: the unanswered instances."""
        (call,) = _calls({process: sorted(lost)})
        return call

    def together(self, steps: Sequence[Step]) -> Step:
        if len(steps) == 1:
            return steps[0]
        called: dict[Place, list[int]] = {}
        for call in chain.from_iterable(step.calls for step in steps):
            called.setdefault(call.place, []).extend(call.tasks)
        delays = {number: seconds for step in steps for number, seconds in step.delays}
        cancelled = {number for step in steps for number in step.cancelled}
        return Step(
            [number for step in steps for number in step.begins],
            _calls(called),
            [each for each in delays.items() if each[0] not in cancelled],
            list(cancelled - delays.keys()),
        )

    def tasks_at(self, place: Place) -> list[int]:
        return [number for number, where in self.place_of.items() if where == place]

    def _placed(
        self,
        numbers: Iterable[int] = (),
        delays: Sequence[tuple[int, float]] = (),
        cancelled: Sequence[int] = (),
    ) -> Step:
        """Begin `numbers` and waiting instances at places with fewer than `MOST_AT_ONCE`."""
        for number in numbers:
            self._waiting.setdefault(self.wrap.task_of(number), deque()).append(number)
        begun: dict[Place, list[int]] = {}
        for task, waiting in list(self._waiting.items()):
            places = self.wrap.places_of[task]
            while waiting:
                place = min(places, key=self._running.__getitem__)
                if self._running[place] >= MOST_AT_ONCE:
                    break
                number = waiting.popleft()
                if not self._is_ready(number):
                    continue
                self._running[place] += 1
                self.place_of[number] = place
                begun.setdefault(place, []).append(number)
            if not waiting:
                del self._waiting[task]
        return Step([*chain.from_iterable(begun.values())], _calls(begun), delays, cancelled)

    def _is_ready(self, number: int) -> bool:
        return True

    def _leave(self, number: int) -> None:
        place = self.place_of.pop(number, None)
        self.timeouts_s.pop(number, None)
        if place is not None:
            self._running[place] -= 1


class Instances(Placement):
    """Independent instances that another wrap asks for."""

    def __init__(self, wrap: Wrap, numbers: Sequence[int]) -> None:
        super().__init__(wrap, numbers)
        self._left = len(numbers)
        self._numbers = numbers

    @property
    def is_complete(self) -> bool:
        return self._left == 0

    def start(self, objects: Any) -> Step:
        return self._placed(self._numbers)

    def ended(self, number: int, output: Any) -> Step:
        self._left -= 1
        self._leave(number)
        return self._placed()

    def failed(self, number: int, error: TaskError) -> Step:
        return self.ended(number, None)  # the wrap that asked handles the failure


class Deciding(Placement):
    """One execution of a state machine.

    Args:
        ident: the name of the execution.
        deadline: the end of the time for evaluation, in seconds of the clock of `world`.
        world: the functions outside the core.
        longest: the maximum size of a task's input or of the output, in bytes, about.
        most_bytes: the maximum size of a task's result or a state's output, in bytes.
    """

    evaluates = True

    def __init__(
        self,
        wrap: Wrap,
        entry: Entry,
        ident: str,
        deadline: float,
        world: World,
        longest: float = math.inf,
        most_bytes: float = math.inf,
    ) -> None:
        from wrap.core.statemachine.machine import Machine  # only workflows that decide load it

        super().__init__(wrap)
        self._longest = longest
        self._states = entry.states
        context = partial(execution_context, wrap.workflow, ident)
        self._world = world
        self._patience = patience = Patience(deadline, world.clock)
        evaluator = world.evaluator(patience.left_s)
        self._machine = Machine(
            *(entry.machine or {}, context, world.chance, evaluator, patience.look, most_bytes),
            min(longest, LONGEST),
        )
        self._in_stages = entry.in_stages
        self._numbers: dict[int, int] = {}
        #: The inputs of instances without a place, and the errors of inputs that do not fit.
        self._given: dict[int, Any] = {}
        self._unfit: dict[int, StatesError] = {}
        #: With stages: the instances that begin when all running ones have ended, and how many run.
        self._held: list[int] = []
        self._open = 0
        self._data: Any
        #: The request, and the answer of the task that ended last.
        self._request = self._last = world.object_of("", False)

    @property
    def is_complete(self) -> bool:
        return self._machine.over

    def start(self, objects: Any) -> Step:
        """Begin with the request `objects[None]`; the answer replaces it at the end."""
        self._data, self._request = objects, objects[None]
        self._patience.renew()
        return self._follow(self._machine.start(_text(objects[None]), self._world.today()))

    def ended(self, number: int, output: Any) -> Step:
        output = output or self._world.object_of("", False)
        self._patience.renew()
        step = self._machine.ended(self._own(number), _text(output), self._world.today())
        self._last = output
        return self._follow(step, number)

    def failed(self, number: int, error: TaskError) -> Step:
        failure = failure_of(error.code, error.message, error.caught)
        self._patience.renew()
        step = self._machine.failed(self._own(number), failure, self._world.today())
        if self._machine.outcome is failure:
            raise error
        return self._follow(step, number)

    def due(self, number: int) -> Step:
        self._open -= 1
        self._patience.renew()
        return self._follow(self._machine.due(number, self._world.today()))

    def _own(self, number: int) -> int:
        """Return the number by which the machine identifies an instance."""
        return number // self.wrap.instances

    def _follow(self, step: states.Step, ended: int | None = None) -> Step:
        outcome = self._machine.outcome
        if isinstance(outcome, StatesError):
            raise workflow_failed(outcome.name, outcome.cause)
        if self._machine.over:
            try:
                answer = self._object(outcome)
            except StatesError as error:
                raise workflow_failed(error.name, f"the output: {error.cause}") from None
            if outcome is self._machine.result:  # the unchanged answer of the last task
                answer.content_type = self._last.content_type or answer.content_type
                answer.head = self._last.head
            self._data.add({None: answer})
            return Step([], [])
        if ended is not None:
            self._open -= 1
            self._leave(ended)
        numbers = [self._numbered(begin) for begin in step.begins]
        self._open += len(step.delays)
        cancelled = [number for number in step.dropped if not self._drop(number)]
        self._open -= len(cancelled)
        if self._in_stages:
            self._held += numbers
            numbers = []
            if not self._open:
                numbers, self._held = self._held, numbers
        self._open += len(numbers)
        delays = [(each.number, each.seconds) for each in step.delays]
        steps = [self._placed(numbers, delays, cancelled)]
        while self._unfit:
            number, unfit = self._unfit.popitem()
            failed = self._machine.failed(self._own(number), unfit, self._world.today())
            steps.append(self._follow(failed, number))
        return self.together(steps)

    def _is_ready(self, number: int) -> bool:
        given = self._given.pop(number)
        try:
            given_object = self._object(given)
        except StatesError as error:
            self._unfit[number] = of_task("the input", error)
            return False
        if given is self._machine.given:  # the unchanged request
            given_object = self._request
        self._data.add({given_to(number): given_object})
        return True

    def _object(self, value: Any) -> Any:
        return self._world.object_of(dump(value, self._longest), not isinstance(value, Text))

    def _numbered(self, begin: states.Begin) -> int:
        number = begin.number * self.wrap.instances + self._states[begin.task]
        self._numbers[begin.number] = number
        if begin.timeout_s is not None:
            self.timeouts_s[number] = begin.timeout_s
        self._given[number] = begin.given
        return number

    def _leave(self, number: int) -> None:
        super()._leave(number)
        self._numbers.pop(self._own(number), None)
        self._data.drop(given_to(number))

    def _drop(self, own: int) -> bool:
        """Cancel an instance before it begins; return whether the number is an instance at all."""
        number = self._numbers.get(own)
        if number is None:
            return False
        if number in self._held:
            self._held.remove(number)
            del self._given[number]
        elif number in self._unfit:
            del self._unfit[number]
            self._open -= 1
        elif number not in self.place_of:
            self._waiting[self.wrap.task_of(number)].remove(number)
            del self._given[number]
            self._open -= 1
        return True


def _calls(begun: Mapping[Place, Sequence[int]]) -> list[Call]:
    """Return calls for the begun instances, those of other wraps first."""
    calls = [
        Call(place, tuple(its), tuple(map(given_to, its)), frozenset(its))
        for place, its in begun.items()
        if place != MAIN
    ]
    calls.sort(key=lambda call: isinstance(call.place, int))
    return calls


def _text(given: Any) -> str:
    return str(given.text("surrogateescape"))

"""Runs a machine of Amazon States Language: maps events to the tasks and delays to begin.

The module is pure: it has no clock, thread or function. A wrap runs the tasks in parallel, the
reference executor one after another; both decide nothing themselves. `workflow.asl` normalises the
definitions. The language: states-language.net/spec.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from math import inf
from typing import Any

from . import map_states
from .chance import Chance
from .entering import ENTER
from .errors import StatesError, of_task
from .expressions import Evaluator
from .flows import Contexts, Flows
from .limit import LONGEST, Check, Limited, unlimited
from .maps import input_of, is_failed
from .retries import backoff_s, covers, names_of, retrier_for
from .values import dump, read
from .visits import After, Begin, Delay, Following, Leaving, Scope, Step, Visit, at

#: The limit of consecutive states without a task or wait: more are an endless loop.
_TRANSITIONS = 10_000
#: `dump` may stop at this multiple of the byte limit: its estimate is never that wrong.
_SURELY = 8


class Machine:
    """One execution of a state machine.

    Args:
        context: maps the input and the start time to the constant fields of the context object.
        chance: the source of random values; a replay with the same source is identical.
        evaluator: evaluates JSONata.
        check: called often during an evaluation. A StatesError that it raises fails the state. Any
            other exception ends the execution: the caller passes it no further event.
        most_bytes: the limit of a task's result and of a state's output, in bytes of JSON.
        longest: the limit of a text that an intrinsic function builds, in characters.
    """

    def __init__(
        self,
        definition: Mapping[str, Any],
        context: Callable[[Any, float], Mapping[str, Any]],
        chance: Chance,
        evaluator: Evaluator,
        check: Check = unlimited,
        most_bytes: float = inf,
        longest: float = LONGEST,
    ) -> None:
        self.over = False
        #: The output of the ended execution, or its `StatesError`.
        self.outcome: Any = None
        self.given: Any = None
        #: The result of the task that ended last.
        self.result: Any = None
        self._definition = definition
        self._make_context = context
        self.chance = chance
        self._check = check
        self._most_bytes = most_bytes
        self._limited = Limited(check, longest)
        #: Holds the time of the current event.
        self.contexts = Contexts()
        #: Evaluates the fields of states.
        self.flows = Flows(chance, self.contexts, evaluator)
        self._numbers = count()
        self._awaited: dict[int, Visit | None] = {}
        self._whole: Scope
        self._step = Step([], [], [])
        #: States that ended in this event, and their successors: see `_proceed`.
        self._going = deque[tuple[Visit, Following, After]]()

    def start(self, text: str, now: float) -> Step:
        """Begin with the input `text`; all events have `now`, the time in seconds since 1970."""

        def begin() -> None:
            self._whole = scope = Scope(self._definition, None, 0, None)
            try:
                given = self.given = read(text)
            except StatesError as error:
                self._over(StatesError(error.name, f"the input: {error.cause}"))
                return
            self.contexts.fields = self._make_context(given, now)
            if seconds := self._definition.get("TimeoutSeconds"):
                self.delay(None, seconds, frozenset())
            self._go(scope, self._definition["StartAt"], given, frozenset())

        return self._event(now, begin)

    def ended(self, number: int, text: str, now: float) -> Step:
        """Handle the answer `text` of a task."""

        def end(visit: Visit) -> None:
            after = frozenset((number,))
            if visit.state["Type"] == "Map":
                map_states.answered(self, visit, text, after)
                return
            try:
                _bound(text, self._most_bytes)
                result = read(text)
            except StatesError as error:
                self.fail(visit, at(visit, of_task("the answer", error)), after)
                return
            if "Invoke" in visit.state:
                result = {"ExecutedVersion": "$LATEST", "Payload": result, "StatusCode": 200}
            self.result = result
            self.finish(visit, lambda: result, after)

        return self._resume(number, now, end)

    def failed(self, number: int, error: StatesError, now: float) -> Step:
        def fail(visit: Visit) -> None:
            late = visit.beats and error.name == "States.Timeout"
            named = StatesError("States.HeartbeatTimeout", error.cause) if late else error
            if visit.state["Type"] == "Map":
                named = map_states.unanswered(visit, error)
            self.fail(visit, named, frozenset((number,)))

        return self._resume(number, now, fail)

    def due(self, number: int, now: float) -> Step:
        def pass_on(visit: Visit | None) -> None:
            after = frozenset((number,))
            if visit is None:
                seconds = self._definition["TimeoutSeconds"]
                self._over(StatesError("States.Timeout", f"it took more than {seconds} s"))
            elif visit.state["Type"] == "Wait":
                self._go_on(
                    visit, after, lambda: self.flows.of(visit).unchanged(visit, visit.state)
                )
            else:
                visit.after = after
                self._proceed(visit, self._entered(visit), after)

        return self._resume(number, now, pass_on)

    def _resume(self, number: int, now: float, handle: Callable[[Any], None]) -> Step:
        """Handle the end of the task or delay `number`, unless it was dropped."""
        if number not in self._awaited:
            return Step([], [], [])
        visit = self._awaited.pop(number)
        if visit is not None:
            visit.number = None
        return self._event(now, lambda: handle(visit))

    def _event(self, now: float, handle: Callable[[], None]) -> Step:
        self.contexts.now = now
        self._step = step = Step([], [], [])
        with self._limited:
            try:
                handle()
                while self._going and not self.over:
                    visit, following, after = self._going.popleft()
                    if visit.scope.visit is visit:  # else the state was dropped
                        self._go(visit.scope, *following, after)
            except RecursionError:
                self._over(StatesError("States.Runtime", "states are nested too deep"))
        if self.over:
            step.dropped.extend(self._awaited)
            self._awaited.clear()
        if step.dropped:
            begun = {each.number for each in step.begins} | {each.number for each in step.delays}
            step.dropped[:] = [number for number in step.dropped if number not in begun]
            step.begins[:] = [each for each in step.begins if each.number in self._awaited]
            step.delays[:] = [each for each in step.delays if each.number in self._awaited]
        return step

    def _over(self, outcome: Any) -> None:
        self.over, self.outcome = True, outcome
        self._going.clear()
        self._drop(self._whole)

    def _go(self, scope: Scope, name: str | None, value: Any, after: After) -> None:
        """Enter the state `name` and its successors until one waits; None ends the scope."""
        following: Following | None = name, value
        while scope.passed < _TRANSITIONS:
            if following is None:
                return
            scope.passed += 1
            name_or_end, value = following
            if name_or_end is None:
                self._end(scope, value, after)
                return
            visit = scope.visit = Visit(scope, name_or_end, value, after, self.contexts.now)
            following = self._entered(visit)
        message = f"more than {_TRANSITIONS} states without a task or a wait, the last {name!a}"
        self.fail_scope(scope, StatesError("States.Runtime", message), after)

    def _proceed(self, visit: Visit, following: Following | None, after: After) -> None:
        """Queue the transition to a state's successor until the event is handled.

        A state can end within the call that entered it. An immediate transition would nest the
        calls of all following states.
        """
        if following is not None:
            self._going.append((visit, following, after))

    def _entered(self, visit: Visit) -> Following | None:
        """Enter a state and return its successor; None if the state waits or failed."""
        try:
            self._check()
            return ENTER[visit.state["Type"]](self, visit)
        except StatesError as error:
            return self._caught(visit, at(visit, error), visit.after)

    def _go_on(self, visit: Visit, after: After, leave: Callable[[], Leaving]) -> None:
        try:
            following: Following | None = self.left(visit, visit.state.get("Next"), leave())
        except StatesError as error:
            following = self._caught(visit, at(visit, error), after)
        self._proceed(visit, following, after)

    def finish(self, visit: Visit, result: Callable[[], Any], after: After) -> None:
        self._go_on(visit, after, lambda: self.flows.of(visit).output(visit, result()))

    def fail(self, visit: Visit, error: StatesError, after: After) -> None:
        """Retry a failed state, pass its error to a catcher, or fail its scope."""
        self._proceed(visit, self._caught(visit, error, after), after)

    def _end(self, scope: Scope, value: Any, after: After) -> None:
        scope.visit = None
        visit = scope.parent
        if visit is None:
            self._over(value)
        else:
            now, run = self.contexts.now, visit.run
            kept = value if run is None else run.ended(scope.index, "SUCCEEDED", value, now)
            self._leave(visit, scope, kept, after)

    def _leave(self, visit: Visit, scope: Scope, value: Any, after: After) -> None:
        """Record the end of a state's child scope; `value` is its result."""
        del visit.children[scope.index]
        visit.results[scope.index] = value
        visit.left -= 1
        visit.running -= 1
        visit.ends |= after
        self._fill(visit, after)

    def fail_scope(self, scope: Scope, error: StatesError, after: After) -> None:
        """Fail a scope, and its parent state unless that tolerates the failure."""
        scope.visit = None
        visit = scope.parent
        if visit is None:
            self._over(error)
            return
        now, run = self.contexts.now, visit.run
        kept = None if run is None else run.ended(scope.index, "FAILED", error, now)
        if not is_failed(visit, scope.index):
            self._leave(visit, scope, kept, after)
            return
        dropped, visit.children, visit.left = visit.children, {}, -1
        for child in dropped.values():
            self._drop(child)
        dropped.pop(scope.index, None)
        visit.results[scope.index] = kept
        map_states.broken_off(self, visit, error, after, dropped)

    def _drop(self, scope: Scope) -> None:
        """Drop the tasks and delays that a scope awaits."""
        visit, scope.visit = scope.visit, None
        if visit is None:
            return
        visit.run = None  # its files refer to the machine
        if visit.number is not None:
            del self._awaited[visit.number]
            self._step.dropped.append(visit.number)
        for child in visit.children.values():
            self._drop(child)
        visit.children = {}
        visit.left = -1

    def left(self, visit: Visit, name: str | None, leaving: Leaving) -> Following:
        """Assign the variables of a state that ends; return its successor with the input."""
        if self._most_bytes < inf:
            _bound(dump(leaving.output, _SURELY * self._most_bytes), self._most_bytes)
        if leaving.assigned:
            visit.scope.variables = {**visit.scope.variables, **leaving.assigned}
        return name, leaving.output

    def spread(self, visit: Visit, items: Sequence[Any], limit: float) -> None:
        """Begin a scope for each of `items`, at most `limit` at once."""
        visit.items, visit.limit = items, limit
        visit.results = [None] * len(items)
        visit.left, visit.running, visit.started = len(items), 0, 0
        visit.ends = set()
        self._fill(visit, visit.after)

    def _fill(self, visit: Visit, after: After) -> None:
        """Begin as many scopes as the limit allows; leave the state if all have ended."""
        if visit.starting or visit.left < 0:
            return  # a scope that begins here may end at once and call this again
        visit.starting = True
        while 0 <= visit.started < len(visit.items) and visit.running < visit.limit:
            if visit.left < 0:
                break
            self._begin_scope(visit, after)
        visit.starting = False
        if visit.left == 0:
            visit.left = -1
            map_states.completed(self, visit, frozenset(visit.ends) or visit.after)

    def _begin_scope(self, visit: Visit, after: After) -> None:
        index, state, item = visit.started, visit.state, visit.scope.item
        visit.started += 1
        definition = state["ItemProcessor"] if state["Type"] == "Map" else state["Branches"][index]
        visit.running += 1
        scope = visit.children[index] = Scope(definition, visit, index, item)
        if state["Type"] == "Map":
            try:
                its, given = input_of(self.flows.of(visit), visit, index)
            except StatesError as error:
                self.fail_scope(scope, at(visit, error), after)
                return
            scope.item = item if its is None else its
            if visit.run is not None:  # a distributed Map sees no variables around it
                scope.variables = {}
                visit.run.began(index, given, self.contexts.now)
        else:
            given = visit.items[index]
        self._go(scope, definition["StartAt"], given, after)

    def begin_task(
        self, visit: Visit, given: Any, timeout_s: float | None, task: str | None = None
    ) -> None:
        """Begin a state's task, `task` or the task with the state's name."""
        visit.number = number = next(self._numbers)
        self._awaited[number] = visit
        visit.scope.waits()
        self._step.begins.append(Begin(number, task or visit.name, given, timeout_s, visit.after))

    def delay(self, visit: Visit | None, seconds: float, after: After) -> None:
        """Begin a delay of a state, or of the whole machine (None)."""
        number = next(self._numbers)
        self._awaited[number] = visit
        if visit is not None:
            visit.number = number
            visit.scope.waits()
        self._step.delays.append(Delay(number, seconds, after))

    def _caught(self, visit: Visit, error: StatesError, after: After) -> Following | None:
        """Return the successor of a failed state; None if it is retried or not caught."""
        names = names_of(visit.state, error.name)
        retrier = retrier_for(visit.state, visit.retried, names)
        if retrier is not None:
            self.delay(visit, backoff_s(visit, retrier, self.chance), after)
            return None
        for catcher in visit.state.get("Catch", ()):
            if covers(catcher["ErrorEquals"], names):
                found = {"Error": error.name, "Cause": error.cause}
                try:
                    leaving = self.flows.of(visit).caught(visit, catcher, found)
                    return self.left(visit, catcher["Next"], leaving)
                except StatesError as unfit:
                    error = at(visit, unfit)
                    break
        self.fail_scope(visit.scope, error, after)
        return None


def _bound(text: str, most_bytes: float) -> None:
    """Raise StatesError if the result or output `text` exceeds the byte limit."""
    if most_bytes == inf:
        return
    size = len(text.encode(errors="surrogatepass"))
    if size > most_bytes:
        cause = f"{size} bytes, and {most_bytes} are the most that WRAP_STATE_BYTES allows"
        raise StatesError("States.DataLimitExceeded", cause)

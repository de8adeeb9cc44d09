"""Runs a state machine of Amazon States Language: events go in, what is to begin comes out.

A pure state machine itself: it knows no clock, thread or function. What it says is begun for real
in a wrap, one after another in the reference executor, and in neither of them is anything else
decided. Definitions are as `workflow.asl` normalises them. The language: states-language.net/spec.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from itertools import count
from math import floor, inf
from typing import Any, NamedTuple

from .chance import Chance
from .choices import matches
from .distributed import EXCEEDED, MOST_CHILDREN, Tolerance, batches, tolerance
from .errors import StatesError, of_task
from .limit import Check, Limited, unlimited
from .paths import evaluate, put
from .templates import render, resolve
from .values import Text, dump, instant, number_of, read

#: States that may follow each other with no task or wait among them: more are a loop without end.
_TRANSITIONS = 10_000
#: The longest time that can be waited for: the most seconds that the language lets a state have.
MOST_SECONDS = 99_999_999
#: The error that no Retry and no Catch takes, and those that States.ALL does not match
#: (AWS Step Functions Developer Guide, "Error names").
_FATAL = "States.Runtime"
_TERMINAL = frozenset({_FATAL, "States.DataLimitExceeded"})
#: The last second that a timestamp can be of, in the year 9999.
_LAST_SECOND = 253_402_300_799
_NO_INPUT: dict[str, Any] = {}
#: Stands for the result of an item that failed and is tolerated.
_FAILED = object()
#: The errors of a task that takes too long.
_TIMEOUT, _HEARTBEAT = "States.Timeout", "States.HeartbeatTimeout"

#: Numbers of the begins and delays by whose ends something came about.
After = frozenset[int]
#: The name of the state that follows, None at the end of its chain, and its input.
Following = tuple[str | None, Any]


class Begin(NamedTuple):
    """A task that is to begin; `timeout_s` is None where it has no limit of its own."""

    number: int
    task: str
    given: Any
    timeout_s: float | None
    after: After


class Delay(NamedTuple):
    """A time that is to pass: that of a Wait state, or before a task is tried again."""

    number: int
    seconds: float
    after: After


class Step(NamedTuple):
    """What an event leads to; nobody awaits the numbers in `dropped` any more.

    What an event both begins and drops is in none of the lists.
    """

    begins: list[Begin]
    delays: list[Delay]
    dropped: list[int]


class _Scope:
    """One run through the states of a machine, of a branch, or of an item of a Map.

    It and its visit know each other, but not after its end: what states hand on may be megabytes,
    and would stay until Python looks for cycles.
    """

    __slots__ = ("index", "item", "parent", "states", "visit")

    def __init__(
        self, definition: Mapping[str, Any], parent: _Visit | None, index: int, item: Any
    ) -> None:
        self.states: Mapping[str, Any] = definition["States"]
        self.parent = parent
        self.index = index
        #: What ``$$.Map`` is here.
        self.item = item
        self.visit: _Visit | None = None


class _Visit:
    """A state that has been entered, until it is left."""

    __slots__ = (
        *("after", "children", "ends", "entered", "failed", "given", "items", "known"),
        *("late", "left", "limit", "source", "tolerance"),
        *(
            "name",
            "number",
            "raw",
            "results",
            "retried",
            "running",
            "scope",
            "started",
            "starting",
            "state",
        ),
    )

    # Of what begins scopes: what they get, and the values of expressions that they share; how many
    # may run at once, have begun, run, have not ended; what they answer, and by whose ends they
    # ended.
    given: Any
    known: dict[str, Any]
    items: list[Any]
    limit: float
    started: int
    running: int
    left: int
    results: list[Any]
    ends: set[int]
    # Of a Map: its items, where `items` may be batches of them; how many have failed.
    source: list[Any]
    failed: int

    def __init__(self, scope: _Scope, name: str, raw: Any, after: After, entered: float) -> None:
        self.scope = scope
        self.entered = entered
        self.name = name
        self.state: Mapping[str, Any] = scope.states[name]
        self.raw = raw
        self.after = after
        #: The begin or delay that it awaits.
        self.number: int | None = None
        #: How often each of its retriers has been used.
        self.retried: dict[int, int] = {}
        self.children: dict[int, _Scope] = {}
        self.starting = False
        #: How many items of a distributed Map may fail.
        self.tolerance: Tolerance | None = None
        #: The name of the error if it takes too long.
        self.late = _TIMEOUT


class Machine:
    """One execution of a state machine.

    Parameters
    ----------
    definition
        The normalised document.
    context
        Of the input and the time of the start, the context object, but for what changes from state
        to state.
    chance
        What random values and jitter come from.
    check
        Called again and again while values are evaluated. A StatesError that it raises fails the
        state. Anything else ends the event: the execution is then over for its caller, and gets no
        other event.
    most_bytes
        Bytes of JSON that the result of a task, or the output of a state, may have.

    Attributes
    ----------
    over
        Whether it has ended.
    outcome
        What it then answers, or the `StatesError` that it failed with.
    given
        The value of its input.
    result
        What the task has answered that ended last.
    """

    def __init__(
        self,
        definition: Mapping[str, Any],
        context: Callable[[Any, float], Mapping[str, Any]],
        chance: Chance,
        check: Check = unlimited,
        most_bytes: float = inf,
    ) -> None:
        self.over = False
        self.outcome: Any = None
        self.given: Any = None
        self.result: Any = None
        self._definition = definition
        self._make_context = context
        self._chance = chance
        self._check = check
        self._most_bytes = most_bytes
        self._limited = Limited(check)
        self._context: Mapping[str, Any] = {}
        self._numbers = count()
        self._awaited: dict[int, _Visit | None] = {}
        self._whole: _Scope
        self._now = 0.0
        self._step = Step([], [], [])

    def start(self, text: str, now: float) -> Step:
        """Begin with the input `text`; `now` is in seconds since 1970, as in all events."""

        def begin() -> None:
            self._whole = scope = _Scope(self._definition, None, 0, None)
            try:
                given = self.given = read(text)
            except StatesError as error:
                self._over(StatesError(error.name, f"the input: {error.cause}"))
                return
            self._context = self._make_context(given, now)
            if seconds := self._definition.get("TimeoutSeconds"):
                self._delay(None, seconds, frozenset())
            self._go(scope, self._definition["StartAt"], given, frozenset())

        return self._event(now, begin)

    def ended(self, number: int, text: str, now: float) -> Step:
        """A task has answered."""

        def end(visit: _Visit) -> None:
            after = frozenset((number,))
            try:
                self._bound(text)
                result = read(text)
            except StatesError as error:
                self._fail(visit, _at(visit, of_task("the answer", error)), after)
                return
            if "Invoke" in visit.state:
                result = {"ExecutedVersion": "$LATEST", "Payload": result, "StatusCode": 200}
            self.result = result
            self._finish(visit, result, after)

        return self._resume(number, now, end)

    def failed(self, number: int, error: StatesError, now: float) -> Step:
        """A task has failed."""

        def fail(visit: _Visit) -> None:
            late = error.name == _TIMEOUT and visit.late != _TIMEOUT
            named = StatesError(visit.late, error.cause) if late else error
            self._fail(visit, named, frozenset((number,)))

        return self._resume(number, now, fail)

    def due(self, number: int, now: float) -> Step:
        """A time has passed."""

        def pass_on(visit: _Visit | None) -> None:
            after = frozenset((number,))
            if visit is None:
                seconds = self._definition["TimeoutSeconds"]
                self._over(StatesError("States.Timeout", f"it took more than {seconds} s"))
            elif visit.state["Type"] == "Wait":
                self._go_on(visit, after, lambda: self._input(visit))
            else:
                visit.after = after
                self._enter(visit)

        return self._resume(number, now, pass_on)

    def _resume(self, number: int, now: float, handle: Callable[[Any], None]) -> Step:
        """Handle the end of what has a number, unless nobody awaits it any more."""
        if number not in self._awaited:
            return Step([], [], [])
        visit = self._awaited.pop(number)
        if visit is not None:
            visit.number = None
        return self._event(now, lambda: handle(visit))

    def _event(self, now: float, handle: Callable[[], None]) -> Step:
        self._now = now
        self._step = step = Step([], [], [])
        with self._limited:
            try:
                handle()
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
        self._drop(self._whole)

    # From state to state

    def _go(self, scope: _Scope, name: str, value: Any, after: After) -> None:
        """Enter the state `name`, and those that follow, until one has to wait."""
        following: Following | None = name, value
        for _ in range(_TRANSITIONS):
            if following is None:
                return
            name_or_end, value = following
            if name_or_end is None:
                self._end(scope, value, after)
                return
            visit = scope.visit = _Visit(scope, name_or_end, value, after, self._now)
            following = self._entered(visit)
        message = f"more than {_TRANSITIONS} states without a task or a wait, the last {name!a}"
        self._fail_scope(scope, StatesError("States.Runtime", message), after)

    def _enter(self, visit: _Visit) -> None:
        """Enter a state again, and go on from it."""
        self._proceed(visit, self._entered(visit), visit.after)

    def _proceed(self, visit: _Visit, following: Following | None, after: After) -> None:
        if following is None:
            return
        name, value = following
        if name is None:
            self._end(visit.scope, value, after)
        else:
            self._go(visit.scope, name, value, after)

    def _entered(self, visit: _Visit) -> Following | None:
        """What follows the state at once; None where it has to wait, or has failed."""
        try:
            self._check()
            return _ENTER[visit.state["Type"]](self, visit)
        except StatesError as error:
            return self._caught(visit, _at(visit, error), visit.after)

    def _go_on(self, visit: _Visit, after: After, output: Callable[[], Any]) -> None:
        """Go on from a state with what it gives, but for OutputPath."""
        try:
            following: Following | None = self._next(visit, output())
        except StatesError as error:
            following = self._caught(visit, _at(visit, error), after)
        self._proceed(visit, following, after)

    def _finish(self, visit: _Visit, result: Any, after: After) -> None:
        """Go on from a state with its result."""
        self._go_on(visit, after, lambda: self._combined(visit, result))

    def _fail(self, visit: _Visit, error: StatesError, after: After) -> None:
        self._proceed(visit, self._caught(visit, error, after), after)

    def _end(self, scope: _Scope, value: Any, after: After) -> None:
        """A scope has come to its end."""
        scope.visit = None
        visit = scope.parent
        if visit is None:
            self._over(value)
        else:
            self._leave(visit, scope, value, after)

    def _leave(self, visit: _Visit, scope: _Scope, value: Any, after: After) -> None:
        """One of the scopes that a state began has ended with `value`."""
        del visit.children[scope.index]
        visit.results[scope.index] = value
        visit.left -= 1
        visit.running -= 1
        visit.ends |= after
        self._fill(visit, after)

    def _fail_scope(self, scope: _Scope, error: StatesError, after: After) -> None:
        scope.visit = None
        visit = scope.parent
        if visit is None:
            self._over(error)
            return
        if visit.tolerance is not None:
            batch = visit.items[scope.index] if "ItemBatcher" in visit.state else None
            visit.failed += len(batch) if isinstance(batch, range) else 1
            if not visit.tolerance.is_exceeded(visit.failed, len(visit.source)):
                self._leave(visit, scope, _FAILED, after)
                return
            error = _at(visit, StatesError(EXCEEDED, f"{error.name}: {error.cause}"))
        for child in visit.children.values():
            self._drop(child)
        visit.children = {}
        visit.left = -1
        self._fail(visit, error, after)

    def _drop(self, scope: _Scope) -> None:
        """Await nothing of a scope any more."""
        visit, scope.visit = scope.visit, None
        if visit is None:
            return
        if visit.number is not None:
            del self._awaited[visit.number]
            self._step.dropped.append(visit.number)
        for child in visit.children.values():
            self._drop(child)
        visit.children = {}
        visit.left = -1

    # Input and output

    def _context_of(self, visit: _Visit) -> dict[str, Any]:
        """The context object in a state."""
        state = {
            "EnteredTime": timestamp(visit.entered),
            "Name": visit.name,
            "RetryCount": sum(visit.retried.values()),
        }
        item = visit.scope.item
        return {**self._context, "State": state, **({} if item is None else {"Map": item})}

    def _path(self, visit: _Visit, field: str, value: Any) -> Any:
        """What a path of the state finds in `value`, which is all of it where there is no path."""
        path = visit.state.get(field, "$")
        if path == "$":
            return value
        if path is None:
            return _NO_INPUT
        return evaluate(path, value, self._context_of(visit))

    def _input(self, visit: _Visit) -> Any:
        return self._path(visit, "InputPath", visit.raw)

    def _parameters(self, visit: _Visit) -> Any:
        given = self._input(visit)
        if "Parameters" not in visit.state:
            return given
        return render(visit.state["Parameters"], given, self._context_of(visit), self._chance)

    def _found(self, visit: _Visit, field: str, default: Any, given: Any) -> Any:
        """The value of a field, or what the path in the field that is called so finds."""
        path = visit.state.get(f"{field}Path")
        if path is None:
            return visit.state.get(field, default)
        if path.startswith("States."):
            return resolve(path, given, self._context_of(visit), self._chance)
        return evaluate(path, given, self._context_of(visit))

    def _combined(self, visit: _Visit, result: Any) -> Any:
        """A state's input with its result."""
        state = visit.state
        if "ResultSelector" in state:
            context = self._context_of(visit)
            result = render(state["ResultSelector"], result, context, self._chance)
        path = state.get("ResultPath", "$")
        if path == "$":
            return result
        return visit.raw if path is None else put(path, visit.raw, result)

    def _next(self, visit: _Visit, output: Any) -> Following:
        following = self._path(visit, "OutputPath", output)
        if self._most_bytes < inf:
            self._bound(dump(following))
        return visit.state.get("Next"), following

    def _bound(self, text: str) -> None:
        """Raise StatesError if `text`, a result or an output, has too many bytes."""
        if self._most_bytes < inf and (size := len(text.encode(errors="surrogatepass"))) > (
            most := self._most_bytes
        ):
            cause = f"{size} bytes, and {most} are the most that WRAP_STATE_BYTES allows"
            raise StatesError("States.DataLimitExceeded", cause)

    # States

    def _enter_pass(self, visit: _Visit) -> Following:
        given = self._parameters(visit)
        result = visit.state.get("Result", given)
        return self._next(visit, self._combined(visit, result))

    def _enter_succeed(self, visit: _Visit) -> Following:
        return self._next(visit, self._input(visit))

    def _enter_fail(self, visit: _Visit) -> None:
        name = self._found(visit, "Error", "", visit.raw)
        cause = self._found(visit, "Cause", "", visit.raw)
        self._fail_scope(visit.scope, StatesError(str(name), str(cause)), visit.after)

    def _enter_choice(self, visit: _Visit) -> Following:
        given, context = self._input(visit), self._context_of(visit)
        chosen = (rule["Next"] for rule in visit.state["Choices"] if matches(rule, given, context))
        name = next(chosen, None) or visit.state.get("Default")
        if name is None:
            message = f"state {visit.name!a} has no choice for its input, and no Default"
            raise StatesError("States.NoChoiceMatched", message)
        return name, self._path(visit, "OutputPath", given)

    def _enter_wait(self, visit: _Visit) -> None:
        given = self._input(visit)
        moment = self._found(visit, "Timestamp", None, given)
        if moment is not None:
            seconds = _moment(moment, visit) - self._now
            if seconds > MOST_SECONDS:
                message = f"state {visit.name!a} waits until {moment}: more than {MOST_SECONDS} s"
                raise StatesError("States.Runtime", message)
        else:
            seconds = _seconds(self._found(visit, "Seconds", None, given), visit, 0)
        self._delay(visit, max(0.0, seconds), visit.after)

    def _enter_task(self, visit: _Visit) -> None:
        given = self._parameters(visit)
        timeout_s = None
        if "TimeoutSeconds" in visit.state or "TimeoutSecondsPath" in visit.state:
            found = self._found(visit, "TimeoutSeconds", None, self._input(visit))
            timeout_s = _seconds(found, visit, 1)
        if "HeartbeatSeconds" in visit.state or "HeartbeatSecondsPath" in visit.state:
            found = self._found(visit, "HeartbeatSeconds", None, self._input(visit))
            heartbeat_s = _seconds(found, visit, 1)
            if timeout_s is None or heartbeat_s < timeout_s:
                timeout_s, visit.late = heartbeat_s, _HEARTBEAT
        if "Invoke" in visit.state:
            payload = given.get("Payload", {})
            given = Text(payload) if isinstance(payload, str) else payload
        visit.number = number = next(self._numbers)
        self._awaited[number] = visit
        self._step.begins.append(Begin(number, visit.name, given, timeout_s, visit.after))

    def _enter_parallel(self, visit: _Visit) -> None:
        visit.given = self._parameters(visit)
        self._spread(visit, [visit.given] * len(visit.state["Branches"]), inf)

    def _enter_map(self, visit: _Visit) -> None:
        visit.given = given = self._input(visit)
        items = self._path(visit, "ItemsPath", given)
        if not isinstance(items, list):
            message = f"ItemsPath of state {visit.name!a} finds no list"
            raise StatesError("States.Runtime", message)
        limit = self._whole_number(visit, "MaxConcurrency", visit.state) or inf
        visit.source, visit.failed, visit.known = items, 0, {}
        if "ProcessorConfig" in visit.state["ItemProcessor"]:
            limit = min(limit, MOST_CHILDREN)
            visit.tolerance = tolerance(
                self._whole_number(visit, "ToleratedFailureCount", visit.state),
                self._number(visit, "ToleratedFailurePercentage", visit.state, 100),
            )
        if "ItemBatcher" in visit.state:
            items = self._batched(visit)
        self._spread(visit, items, limit)

    def _batched(self, visit: _Visit) -> list[range]:
        """The items of each batch of a Map, by their indices."""
        batcher = visit.state["ItemBatcher"]
        most_items = self._whole_number(visit, "MaxItemsPerBatch", batcher) or inf
        most_bytes = self._whole_number(visit, "MaxInputBytesPerBatch", batcher) or inf
        if most_bytes < inf:
            most_bytes -= _bytes(self._batch(visit, []))
        return batches(
            len(visit.source),
            most_items,
            most_bytes,
            lambda index: _bytes(self._selected(visit, index)[1]) + 1,
        )

    def _batch(self, visit: _Visit, items: list[Any]) -> dict[str, Any]:
        """The input of a batch of `items`."""
        batch: dict[str, Any] = {}
        if "BatchInput" in visit.state["ItemBatcher"]:
            template, context = visit.state["ItemBatcher"]["BatchInput"], self._context_of(visit)
            batch["BatchInput"] = render(template, visit.given, context, self._chance, visit.known)
        return {**batch, "Items": items}

    def _selected(self, visit: _Visit, index: int) -> tuple[dict[str, Any], Any]:
        """``$$.Map`` of an item, and what ItemSelector makes of the item."""
        value = visit.source[index]
        item = {"Item": {"Index": index, "Value": value}}
        if "ItemSelector" in visit.state:
            context, selector = (
                {**self._context_of(visit), "Map": item},
                visit.state["ItemSelector"],
            )
            value = render(selector, visit.given, context, self._chance, visit.known)
        return item, value

    def _whole_number(self, visit: _Visit, field: str, holder: Mapping[str, Any]) -> int | None:
        """The whole number of a field, or that its path finds; None without either."""
        found = self._number(visit, field, holder, inf)
        if found is not None and found != int(found):
            message = f"{field} of state {visit.name!a} is {found}: no whole number"
            raise StatesError("States.Runtime", message)
        return None if found is None else int(found)

    def _number(
        self, visit: _Visit, field: str, holder: Mapping[str, Any], most: float
    ) -> float | None:
        """The number from 0 to `most` of a field, or that its path finds; None without either."""
        path = holder.get(f"{field}Path")
        value = holder.get(field) if path is None else self._at_path(visit, path)
        if value is None and path is None:
            return None
        found = number_of(value)
        if found is None or not 0 <= found <= most:
            message = f"{field} of state {visit.name!a} is {_shown(value)}: no number from 0 on"
            raise StatesError("States.Runtime", message)
        return found

    def _at_path(self, visit: _Visit, path: str) -> Any:
        return evaluate(path, visit.given, self._context_of(visit))

    def _spread(self, visit: _Visit, items: list[Any], limit: float) -> None:
        """Begin a scope for each of `items`, so many at once."""
        visit.items, visit.limit = items, limit
        visit.results = [None] * len(items)
        visit.left, visit.running, visit.started = len(items), 0, 0
        visit.ends = set()
        self._fill(visit, visit.after)

    def _fill(self, visit: _Visit, after: After) -> None:
        """Begin as many scopes as may run now; go on from the state if all have ended."""
        if visit.starting or visit.left < 0:
            return  # what begins here can end at once, and come here again
        visit.starting = True
        while 0 <= visit.started < len(visit.items) and visit.running < visit.limit:
            if visit.left < 0:
                break
            self._begin_scope(visit, after)
        visit.starting = False
        if visit.left == 0:
            visit.left = -1
            results = [each for each in visit.results if each is not _FAILED]
            self._finish(visit, results, frozenset(visit.ends) or visit.after)

    def _begin_scope(self, visit: _Visit, after: After) -> None:
        index, state, item = visit.started, visit.state, visit.scope.item
        visit.started += 1
        given = visit.items[index]
        definition = state["ItemProcessor"] if state["Type"] == "Map" else state["Branches"][index]
        visit.running += 1
        scope = visit.children[index] = _Scope(definition, visit, index, item)
        if state["Type"] == "Map":
            try:
                if "ItemBatcher" in state:
                    given = self._batch(visit, [self._selected(visit, each)[1] for each in given])
                else:
                    scope.item, given = self._selected(visit, index)
            except StatesError as error:
                self._fail_scope(scope, _at(visit, error), after)
                return
        self._go(scope, definition["StartAt"], given, after)

    # Errors

    def _delay(self, visit: _Visit | None, seconds: float, after: After) -> None:
        number = next(self._numbers)
        self._awaited[number] = visit
        if visit is not None:
            visit.number = number
        self._step.delays.append(Delay(number, seconds, after))

    def _caught(self, visit: _Visit, error: StatesError, after: After) -> Following | None:
        """What follows where a state has failed; None where that is tried again, or not caught."""
        names = {error.name}
        if visit.state["Type"] == "Parallel":
            names.add("States.BranchFailed")
        if error.name == _HEARTBEAT:
            names.add(_TIMEOUT)
        retrier = self._retrier(visit, names)
        if retrier is not None:
            self._delay(visit, self._backoff_s(visit, retrier), after)
            return None
        for catcher in visit.state.get("Catch", ()):
            if _covers(catcher["ErrorEquals"], names):
                found = {"Error": error.name, "Cause": error.cause}
                path = catcher.get("ResultPath", "$")
                try:
                    output = visit.raw if path is None else put(path, visit.raw, found)
                except StatesError as unfit:
                    error = _at(visit, unfit)
                    break
                return catcher["Next"], output
        self._fail_scope(visit.scope, error, after)
        return None

    def _retrier(self, visit: _Visit, names: set[str]) -> int | None:
        """The retrier of the error, unless it has been used as often as it may."""
        for index, retrier in enumerate(visit.state.get("Retry", ())):
            if _covers(retrier["ErrorEquals"], names):
                left = visit.retried.get(index, 0) < retrier.get("MaxAttempts", 3)
                return index if left else None
        return None

    def _backoff_s(self, visit: _Visit, index: int) -> float:
        retrier, used = visit.state["Retry"][index], visit.retried.get(index, 0)
        visit.retried[index] = used + 1
        most = float(retrier.get("MaxDelaySeconds", MOST_SECONDS))
        try:
            factor = float(retrier.get("BackoffRate", 2.0)) ** used
            seconds: float = min(retrier.get("IntervalSeconds", 1) * factor, most)
        except OverflowError:
            seconds = most
        if retrier.get("JitterStrategy") == "FULL":
            return self._chance.uniform(0.0, seconds)
        return seconds


_ENTER: Mapping[str, Callable[[Machine, _Visit], Following | None]] = {
    "Pass": Machine._enter_pass,
    "Task": Machine._enter_task,
    "Choice": Machine._enter_choice,
    "Wait": Machine._enter_wait,
    "Succeed": Machine._enter_succeed,
    "Fail": Machine._enter_fail,
    "Parallel": Machine._enter_parallel,
    "Map": Machine._enter_map,
}


def _covers(patterns: Iterable[str], names: set[str]) -> bool:
    """Whether a retrier or catcher is for an error of these names.

    No wildcard covers `_TERMINAL`, nothing covers `_FATAL`, and ``States.TaskFailed`` no timeout.
    """
    if _FATAL in names:
        return False
    for pattern in patterns:
        if pattern in names:
            return True
        if not names.isdisjoint(_TERMINAL):
            continue
        if pattern == "States.ALL" or (pattern == "States.TaskFailed" and _TIMEOUT not in names):
            return True
    return False


def _at(visit: _Visit, error: StatesError) -> StatesError:
    """What has failed in a state, with its name; without a traceback, whose frames have it all."""
    name = f"{visit.name!a}"
    cause = error.cause if name in error.cause else f"state {name}: {error.cause}"
    return StatesError(error.name, cause)


def _bytes(value: Any) -> int:
    """The bytes of `value` as JSON."""
    return len(dump(value).encode(errors="surrogatepass"))


def _shown(value: Any) -> str:
    """The beginning of `value` for a message."""
    return dump(value)[:60]


def _seconds(value: Any, visit: _Visit, least: int) -> float:
    seconds = number_of(value)
    if seconds is None or not least <= seconds <= MOST_SECONDS or seconds != int(seconds):
        message = (
            f"state {visit.name!a} has {_shown(value)} seconds: "
            f"no whole number from {least} to {MOST_SECONDS}"
        )
        raise StatesError("States.Runtime", message)
    return float(seconds)


def _moment(text: Any, visit: _Visit) -> float:
    moment = instant(text)
    if moment is None:
        message = f"state {visit.name!a} has {_shown(text)} where a timestamp has to be"
        raise StatesError("States.Runtime", message)
    return float(moment)


def timestamp(seconds: float) -> str:
    """A time, in seconds since 1970, as the language writes it."""
    second = floor(seconds)
    # The float is not exact: milliseconds are those of the microsecond that is nearest.
    more, milliseconds = divmod(round((seconds - second) * 1_000_000) // 1000, 1000)
    return f"{_second(second + more)}.{milliseconds:03}Z"


@lru_cache(1)
def _second(seconds: int) -> str:
    """A whole second as the language writes it: most events are in the same one as that before."""
    shown = datetime.fromtimestamp(min(seconds, _LAST_SECOND), UTC)
    return shown.isoformat().removesuffix("+00:00")


def execution_context(workflow: str, ident: str, given: Any, now: float) -> dict[str, Any]:
    """The context object of the execution `ident` of a workflow, which began `now` with `given`.

    An execution has no role and is never redriven. `RoleArn` names a role of the workflow in an
    account of zeros, so that expressions that take it apart find its parts.
    """
    execution = {
        "Id": ident,
        "Name": ident,
        "Input": given,
        "RedriveCount": 0,
        "RoleArn": f"arn:aws:iam::{0:012}:role/{workflow}",
        "StartTime": timestamp(now),
    }
    return {"Execution": execution, "StateMachine": {"Id": workflow, "Name": workflow}}

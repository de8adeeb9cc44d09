"""One execution in this wrap: does what the engine says, and tells it what happens.

It has no thread. Whatever thread an event comes in handles it: that of the request, of a task that
has ended, of a call to another wrap, or the loop, which waits for processes and times. A thread
whose task has ended waits itself for the processes that are called then, but only for a moment: so
what they answer at once wakes no other thread; if it is another wrap that is called then, it calls
it. The first failure fails the execution. What is still running then is stopped: processes are
killed, as they share nothing with us; threads are left to end by themselves until the deadline, and
only then interrupted, as that can hurt what they share.
"""

from __future__ import annotations

import contextlib
import math
import select
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from wrap.cluster import store_path
from wrap.cluster.peers import Given, Peers
from wrap.config.redaction import redacted
from wrap.core.dag import MAIN, Call, Engine, Key, Step, keys
from wrap.core.errors import TaskError
from wrap.core.recovery import Attempts
from wrap.dispatch.placement import Placement
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.loop import Timer
from wrap.event_loop.threads import Run, own_run
from wrap.functions import runner as tasks
from wrap.functions.task_io import Access
from wrap.net.messages import Ident, Request, Result
from wrap.net.transport import GRACE_S
from wrap.pipes.broker import Opened
from wrap.pipes.endpoints import LOST
from wrap.pipes.piecewise import Client
from wrap.values.inputs import Inputs
from wrap.values.value import Object
from wrap.workers.worker import Process, ProcessDiedError

#: How long tasks of this process wait until the calls of other wraps are sent, in seconds;
#: connecting, or a large input, can take longer. A thread that computes keeps the GIL for a switch
#: interval, and sending needs it several times.
_SENDING_S = 0.02
#: For how many milliseconds a thread whose task has ended waits for processes before the loop does:
#: longer than a message takes, and short beside most tasks.
_MOMENT_MS = 1

#: How long an execution waits for processes before it looks whether all others wait, in seconds;
#: then twice as long, and so on.
_BLOCKED_S = 0.02

#: How long the cause of a stream's breaking off may take to be known, in seconds.
_CAUSE_S = 0.5

#: Bytes of all objects of an execution whose answer is made in a moment.
_SMALL = 1 << 16

#: The code of the error of a task whose process has ended.
_DIED = "process-died"
#: What becomes of an execution: its results, or why there are none.
Outcome = list[Result] | TaskError
#: What becomes of one that nobody waits for any more, and of tasks when theirs has failed.
CANCELLED = TaskError("cancelled", "nobody waits for it any more")
_UNENDED = TaskError("cancelled", "another task has failed")


@dataclass
class _Taken:
    """A further process that works for the execution.

    Attributes
    ----------
    rest
        How many of its tasks it has not been called for.
    has
        The objects that it has got.
    watched
        Whether the loop waits for it.
    """

    process: Process
    asked: float
    rest: int
    has: set[Key] = field(default_factory=set)
    watched: bool = False


@dataclass
class _Turn:
    """A thread that runs tasks of this process, or calls other wraps, one after another.

    Attributes
    ----------
    run
        Its work of the pool, by which it can be given up.
    following
        The task that it runs next.
    asks
        The wrap that it calls next, for what, and what it calls when that is on its way.
    awaits
        The processes that it waits for, by their descriptors.
    """

    run: Run | None = None
    following: int | None = None
    asks: tuple[str, Request, Callable[[], None]] | None = None
    awaits: dict[int, int] = field(default_factory=dict)


class Execution:
    """A request of the workflow's, or what another wrap has this one do for one.

    Parameters
    ----------
    engine
        What says what is to be run.
    objects
        What that needs from elsewhere.
    deadline
        Seconds of the monotonic clock.
    reply
        Called once, with this and the outcome, by a thread that may take its time.
    peers
        The other wraps that take part in it, which get what its tasks give and give what these
        need; None where it begins with all that it needs, and only answers.
    prepare
        Gives further objects when it begins: what takes time and memory to be made, and may have
        to wait until there are processes for it.
    into_buckets
        Takes what its tasks emit that goes into buckets.
    client
        Whom the task that answers may answer piece by piece; None where its answer goes whole.

    Attributes
    ----------
    here
        The tasks that have ended here, or that others have ended as this wrap knows.
    """

    def __init__(
        self,
        runtime: Runtime,
        engine: Engine | Placement,
        objects: dict[Key, Object],
        ident: Ident,
        deadline: float,
        reply: Callable[[Execution, Outcome], None],
        peers: Peers | None = None,
        prepare: Callable[[], Mapping[Key, Object]] | None = None,
        into_buckets: Callable[[Result], None] | None = None,
        client: Client | None = None,
    ) -> None:
        self.data = Inputs(objects, runtime.sink)
        self.here: set[int] = set()
        self.peers = peers
        self._runtime = runtime
        self.ident = ident
        self._deadline = deadline
        self._reply = reply
        self._prepare = prepare
        self._into_buckets = into_buckets
        self._engine = engine
        self._part = engine.part
        self._broker = runtime.broker if engine.part.live else None
        self._attempts = Attempts(engine.part.components)
        self._client = client
        self._opened = Opened(ident.number, self._attempt_of, client)
        elsewhere = client is not None and (engine.part.processes or peers is not None)
        self._board = runtime.broker if elsewhere or engine.part.live else None
        self._lock = threading.RLock()
        self._results: list[Result] = []
        #: Tasks that have ended and need not run again, once there are large objects.
        self._settled: set[int] = set()
        self._taken: dict[int, _Taken] = {}
        #: Processes that were called and that nothing waits for yet, by their descriptors.
        self._called: dict[int, int] = {}
        #: Wraps that no thread calls yet, and for what.
        self._uncalled: list[tuple[str, Request]] = []
        self._runs: dict[int, Run] = {}
        #: Tasks that begin here and that no thread has taken, whether a thread is on its way to
        #: them, and the task before them if a thread prepares it.
        self._waiting: deque[int] = deque()
        self._coming = False
        self._preparing: int | None = None
        #: How often each task has begun again.
        self._begun_again: dict[int, int] = {}
        #: Calls that wait until a process has ended, and another is in its place.
        self._held_back: dict[int, list[Call]] = {}
        #: Until when each task may run that has begun.
        self._limits: dict[int, float] = {}
        #: When each task has begun, where somebody is told of those that do not end.
        self._began: dict[int, float] | None = {} if ident.is_exported else None
        self._delays: dict[int, Timer] = {}
        self._timer: Timer | None = None
        self._due = math.inf
        self._begun = self._admitted = self._lent = False
        #: What has come from other wraps before it could begin.
        self._early: list[Given] = []
        self._outcome: Outcome | Callable[[], Outcome] | None = None

    def start(self, turn: Run | None = None) -> None:
        """Begin, as soon as there are processes for it.

        The thread of `turn`, if that is the calling one, runs tasks itself where it can.
        """
        if missing := self.data.missing:
            self.event(self._in_a_thread, partial(self._fetch, missing, self._start))
        else:
            self._start(turn)

    def _start(self, turn: Run | None = None) -> None:
        self.event(self._wake_at, self._deadline)
        if self._board is not None:
            self._board.begin(self._opened)
        if self._part.processes:
            self._runtime.mechanism.admit(self)
            self._lend_later()
            self._ask_for_more(_BLOCKED_S)
        elif turn is None:
            self.event(self._begin)
        else:
            own = _Turn(turn)
            self.event(lambda: self._go_on(own, self._first()))
            self._run_in_turn(own)

    @property
    def is_piecewise(self) -> bool:
        """Whether the client may get the answer piece by piece."""
        return self._client is not None

    @property
    def live(self) -> bool:
        """Whether streams are read while they are written."""
        return self._broker is not None

    @property
    def complete(self) -> bool:
        """Whether all its tasks here have ended."""
        return not self._engine.left

    @property
    def over(self) -> bool:
        """Whether it has been decided how it ends."""
        return self._outcome is not None

    def arrived(self, given: Given) -> None:
        """Other wraps' objects have come, or the names of those that a store has."""
        objects = [each for each in given.values() if each is not None]
        take_in = lambda: self._start_here(self._arrived(given))  # noqa: E731
        self.event(self.fetched, objects, take_in)

    def took(self, results: list[Result]) -> None:
        """Another wrap has answered; while an event is handled."""
        self._results += results
        self._start_here(self._arrived({each.task: each.output for each in results}))

    def cancel(self) -> None:
        """The home is gone, or wants it no more."""
        self.event(_raise, CANCELLED)

    def fetched(self, objects: Iterable[Object], then: Callable[[], None]) -> None:
        """Go on when all of `objects` are here; while an event is handled."""
        missing = [each for each in objects if each.missing]
        if missing:
            self._in_a_thread(partial(self._fetch, missing, partial(self.event, then)))
        else:
            then()

    def stored(self, objects: Mapping[Key, Object], then: Callable[[], None]) -> None:
        """Go on when the store has all of `objects`, if there is one; while an event is handled."""
        if objects and self._runtime.store is not None:
            self._in_a_thread(partial(self._store, objects, partial(self.event, then)))
        else:
            then()

    def _in_a_thread(self, work: Callable[[], None]) -> None:
        self._runtime.threads.start(work)

    def _fetch(self, missing: Iterable[Object], then: Callable[[], None]) -> None:
        try:
            store_path.get(self._runtime.store, missing, self._deadline)
        except TaskError as error:
            self.event(_raise, error)
        else:
            then()

    def _store(self, objects: Mapping[Key, Object], then: Callable[[], None]) -> None:
        exchange, size = self._runtime.exchange, sum(each.size for each in objects.values())
        if exchange is not None:
            exchange.pressure.leaves(exchange, size)
        try:
            store_path.put(self._runtime.store, self.ident.number, objects, self._deadline)
        except TaskError as error:
            self.event(_raise, error)
        else:
            then()
        finally:
            if exchange is not None:
                exchange.pressure.left(exchange, size)

    def moved(self, name: str, address: str) -> list[int] | None:
        """Another wrap is elsewhere now; what is here, or None where it is over."""
        with self._lock:
            if self.over or self.peers is None:
                return None
            return self.peers.moved(self, name, address)

    def again(self, task: int, attempt: int) -> list[int] | None:
        """As `next`; what is here, or None where it is over."""
        self.event(self.next, task, attempt)
        with self._lock:
            return None if self.over else sorted(self.here)

    def next(self, task: int, attempt: int) -> None:
        """Have the tasks that live streams connect with one begin again; while an event is handled.

        Those of an attempt before have to answer first: they do when their streams break off.
        """
        if self._broker is not None and self._attempts.next(task, attempt):
            self._broker.next(self._opened, self._attempts.components[task], attempt)
            self._begin_due()

    def broke(self, task: int, attempt: int, error: TaskError) -> None:
        """A task's streams broke in that attempt, or it was lost; while an event is handled."""
        if self.peers is not None:
            self.peers.broke(self, task, attempt, error)
        elif attempt + 1 < self._runtime.wrap.attempts:
            self.next(task, attempt + 1)
        else:
            self.fail_later(error)

    def fail_later(self, error: TaskError) -> None:
        """A stream broke off for good: what happened at its other end is about to be known."""
        when = time.monotonic() + _CAUSE_S
        self._runtime.loop.call_at(when, partial(self.event, _raise, error))

    def _attempt_of(self, task: int) -> int | None:
        with self._lock:
            return self._attempts.attempt_of(task)

    def _begin_due(self) -> None:
        """Have tasks begin again that no task of an attempt before keeps from it."""
        due = self._attempts.due()
        if due and isinstance(self._engine, Engine):
            self._start_here(self._do_here(self._noted(self._engine.repeat(due))))

    def admit(self) -> bool:
        """As `wrap.workers.mechanisms.Guest` says."""
        with self._lock:
            if self._outcome is not None or self._lent or self._admitted:
                return False
            self._admitted = True
        self.event(self._begin)
        return True

    @property
    def is_idle(self) -> bool:
        """Whether no task of it is to run here now: what they need has not come from elsewhere."""
        return self._begun and not self._limits

    @property
    def waits(self) -> bool:
        """As `wrap.workers.mechanisms.Guest` says."""
        if self.live and self.peers is not None:  # what runs may wait for the other end of a stream
            return True
        busy = self._runs or any(taken.process.owed for taken in list(self._taken.values()))
        return self.peers is not None and not busy and not self._held_back

    def _ask_for_more(self, after_s: float) -> None:
        """Look whether it waits to be admitted because the others wait, now and then."""

        def look() -> None:
            self._runtime.mechanism.admit_more()
            self._ask_for_more(2 * after_s)

        if not self._admitted and not self._lent and not self.over:
            self._runtime.loop.call_at(time.monotonic() + after_s, look)

    def _lend_later(self) -> None:
        """Have another replica run all of it, if it waits for too long."""
        offload, part = self._runtime.offload, self._part
        if offload is None or isinstance(part, Placement) or self._admitted or not part.is_whole:
            return
        if self.live:  # another replica's tasks would begin one after another
            return
        if self._into_buckets is not None:  # which are here
            return
        given: dict[Key, Object] = {None: self.data[None]} if None in self.data else {}
        request = Request(self.ident, sorted(part.place_of), given, part.gives)
        lend = partial(offload.lend, request, self._deadline, self._is_to_be_lent, self._returned)
        self._runtime.loop.call_at(time.monotonic() + offload.after_s, partial(self.event, lend))

    def _is_to_be_lent(self) -> bool:
        """Whether it waits still; then it is another replica's from now on."""
        with self._lock:
            self._lent = not self._admitted and self._outcome is None
            return self._lent

    def _returned(self, outcome: Outcome | None) -> None:
        if outcome is None:  # the replica was lost: it is to be run here after all
            self._lent = False
            self._runtime.mechanism.admit(self)
            self._ask_for_more(_BLOCKED_S)
        elif isinstance(outcome, TaskError):
            self.event(_raise, outcome)
        else:
            self.event(self._came_back, outcome)

    def _came_back(self, results: list[Result]) -> None:
        """Take in all results at once, by which nothing is left to begin."""
        if self.peers is not None:
            self.peers.begin(self)
        for result in results:
            if result.error is not None:
                raise TaskError.from_dict(result.error, status=500)
            self.here.add(result.task)
            if result.output is not None:
                self.data.add({result.task: result.output})
            self._engine.ended(result.task, result.output)
        self._results += results
        if self.peers is not None:
            self.peers.gave(self, results, last=True)

    def _begin(self) -> None:
        if self._engine.evaluates:  # neither the loop nor a thread of the server is to wait for it
            self._in_a_thread(partial(self._take_turn, self._first))
            return
        if self.peers is not None:
            self.peers.begin(self)
        self._start_here(self._first())

    def _take_turn(self, handle: Callable[[], list[int]]) -> None:
        """Handle an event in this thread of the pool, and run what begins by it."""
        turn = _Turn(own_run())
        self.event(lambda: self._go_on(turn, handle()))
        self._run_in_turn(turn)

    def _from_loop(self, handle: Callable[[], list[int]]) -> None:
        """Handle an event that the loop reports: in another thread where paths are evaluated.

        That may take until the deadline, and holds the lock.
        """
        if self._engine.evaluates:
            with contextlib.suppress(RuntimeError):  # no thread can be had
                self._in_a_thread(partial(self._take_turn, handle))
                return
        self.event(lambda: self._start_here(handle()))

    def _first(self) -> list[int]:
        """What begins in this process with the execution."""
        self._begun = True
        if self._prepare is not None:
            self.data.add(self._prepare())
        if self._engine.goes_on or self._part.tasks_at(MAIN):
            self._check_threads()
        steps = [self._noted(self._engine.start(self.data))]
        for given in self._early:
            steps.append(self._noted(self._taken_in(given)))
        return self._do(self._engine.together(steps))

    def _arrived(self, given: Given) -> list[int]:
        """Take in objects of other wraps; which tasks begin in this process."""
        if not self._begun:
            self._early.append(given)
            return []
        return self._follow(self._taken_in(given))

    def _taken_in(self, given: Given) -> Step:
        peers, engine = self.peers, self._engine
        if peers is None or isinstance(engine, Placement):
            raise TaskError("other-plan", "nothing of other wraps is awaited here", status=400)
        new = list[int]()
        for task, output in given.items():
            # Word that a task has ended may come before its object does.
            if task not in self.here and (output is not None or not peers.needs(task)):
                new.append(task)
                if output is not None:
                    self.data.add({task: output})
        self.here.update(new)
        return engine.arrived(new)

    def event(self, handle: Callable[..., None], *arguments: Any) -> None:
        """Handle an event; answer if nothing is left to be done after it."""
        with self._lock:
            if self._outcome is not None:
                return
            try:
                handle(*arguments)
            except TaskError as error:
                self._outcome = error
            except Exception as error:  # no thread, descriptor or memory could be had
                self._outcome = TaskError("wrap-failed", f"{type(error).__name__}: {error}")
            if self._outcome is None:
                peers = self.peers
                if self._engine.left or (
                    peers is not None and (peers.waiting or self._attempts.pending)
                ):
                    return
                self._outcome = self._results
            for timer in (self._timer, *self._delays.values()):
                if timer is not None:
                    timer.cancel()
            for taken in self._taken.values():
                self._runtime.loop.forget(taken.process)
        if self._runtime.loop.is_here and not self._ends_at_once():
            with contextlib.suppress(RuntimeError):  # no thread can be had
                self._runtime.threads.start(self._finish)
                return
        self._finish()

    def _ends_at_once(self) -> bool:
        """Whether there is nothing to be ended and a small answer: either may take time."""
        running = self._taken or self._runs or callable(self._outcome)
        quick = self._runtime.store is None and not running
        told = self.ident.watch.traced or self.ident.is_exported
        return quick and not told and self.data.size <= _SMALL

    def _finish(self) -> None:
        """End what is still running, give back what was taken, and answer."""
        outcome = self._outcome() if callable(self._outcome) else self._outcome
        try:
            self._end_all()
        finally:
            if outcome is not None:
                self._reply(self, outcome)
            self.data.close()

    def _end_all(self) -> None:
        if self.peers is not None:
            self.peers.close()
            self.peers.exchange.remove(self)
            # They know it too: its objects would stay until cycles are looked for.
            self.peers = None
        for number, taken in self._taken.items():
            self._give(number, taken.process)
        now = time.monotonic()
        for number, run in self._runs.items():
            self._runtime.threads.give_up(run)
            if self._limits[number] <= now:
                run.cancel()
            else:
                self._runtime.loop.call_at(self._limits[number], run.cancel)
        if self._board is not None:
            self._board.end(self._opened)
        if self._admitted:
            self._runtime.mechanism.leave(self)

    def _follow(self, step: Step) -> list[int]:
        """Do what `step` says, but for the tasks that begin in this process: these it returns."""
        return self._do(self._noted(step))

    def _noted(self, step: Step) -> Step:
        """Expect answers of what begins."""
        now = time.monotonic()
        for number in step.begins:
            self._limits[number] = self._limit(number, now)
        if self._began is not None:
            self._began.update(dict.fromkeys(step.begins, now))
        self._attempts.begin(step.begins)
        if step.begins:
            self._wake_at(min(self._limits[number] for number in step.begins))
        return step

    def _do(self, step: Step) -> list[int]:
        now = time.monotonic()
        for number in step.cancelled:
            self._delays.pop(number).cancel()
        for number, seconds in step.delays:
            due = partial(self._from_loop, partial(self._passed, number))
            self._delays[number] = self._runtime.loop.call_at(now + seconds, due)
        for call in step.calls:
            if isinstance(call.place, str):
                objects = {key: self.data[key] for key in call.needs}
                request = Request(self.ident, call.tasks, objects, call.gives)
                self._uncalled.append((call.place, request))
        if self._uncalled and self._is_here(step):
            sent = self._call_wraps()
            self._runtime.threads.start(partial(self._follow_sent, step, sent, now + _SENDING_S))
            return []
        return self._follow_here(step)

    def _is_here(self, step: Step) -> bool:
        """Whether something of a step runs in this wrap."""
        places = [self._part.place_of.get(number) for number in step.begins]
        return any(isinstance(place, int) for place in places)

    def _follow_sent(self, step: Step, sent: Iterable[threading.Event], until: float) -> None:
        """Go on when the calls of other wraps are on their way."""
        for event in sent:
            event.wait(max(0.0, until - time.monotonic()))
        self.event(lambda: self._start_here(self._follow_here(step)))

    def _follow_here(self, step: Step) -> list[int]:
        peers = self.peers
        if peers is not None and peers.exchange.pressure.matters and step.begins:
            gives = sum(map(peers.gives, step.begins))
            begin = partial(self.event, self._begin_held, step)
            if gives and not peers.exchange.pressure.lets(gives, begin, lambda: self.over):
                self._limits.update(dict.fromkeys(step.begins, self._deadline))
                return []
        return self._do_here(step)

    def _begin_held(self, step: Step) -> None:
        """Have tasks begin that were held back: their own times run from now on."""
        self._start_here(self._do_here(self._noted(step)))

    def _do_here(self, step: Step) -> list[int]:
        for call in step.calls:
            if isinstance(call.place, int) and call.place != MAIN:
                self._call_process(call.place, call)
        # What another wrap was called for may have ended meanwhile, and has no place any more.
        here = [number for number in step.begins if self._part.place_of.get(number) == MAIN]
        return self._runtime.wrap.run_for(here)

    def _passed(self, number: int) -> list[int]:
        """A time has passed that the execution waited for; which tasks begin in this process."""
        if self._delays.pop(number, None):  # else it was cancelled while this waited for the lock
            return self._follow(self._engine.due(number))
        return []

    def _limit(self, number: int, now: float) -> float:
        """Until when a task may run that begins `now`: its function may have a limit of its own."""
        wrap = self._runtime.wrap
        until = now + self._engine.timeouts_s.get(number, math.inf)
        if isinstance(self._part.place_of[number], str):
            return min(self._deadline + GRACE_S, until)
        seconds = wrap.timeouts_s.get(wrap.function_of(number), math.inf)
        return min(self._deadline, now + seconds, until)

    def _wake_at(self, when: float) -> None:
        if when < self._due:
            if self._timer is not None:
                self._timer.cancel()
            self._due = when
            self._timer = self._runtime.loop.call_at(when, partial(self._from_loop, self._look))

    def _look(self) -> list[int]:
        """See whether a task, or all, take too long; which tasks begin in this process."""
        begins = list[int]()
        now, limits = time.monotonic(), self._limits
        late = [number for number, limit in limits.items() if limit <= now]
        own = [number for number in late if not isinstance(self._part.place_of[number], str)]
        if late and now < self._deadline:
            begins = self._give_up(late)
        elif own:
            # What waits at a stream's end is not what takes too long where the other end is gone.
            gone = self.peers.gone() if self.live and self.peers is not None else None
            if gone is not None:
                raise gone
            error = self._located(too_late(self._names(own)), own)
            self._count_failures(own, error.code)
            raise error
        elif late:
            wraps = sorted({str(self._part.place_of[number]) for number in late})
            raise too_late(", ".join(wraps)).located(self._names(late) or None, wraps[0])
        last = self._deadline if self.peers is None else self._deadline + self.peers.grace_s
        if not limits and now >= last:
            raise self._waited_too_long()
        self._due, self._timer = math.inf, None
        until = self._deadline if now < self._deadline else last
        self._wake_at(min(limits.values(), default=until))
        return begins

    def _waited_too_long(self) -> TaskError:
        if self.peers is not None and self._begun:
            unsent = TaskError("timeout", "what other wraps give did not come in time", status=504)
            return self.peers.late() or unsent
        waits = "the request's time was over while it waited, by a Wait or a Retry"
        return TaskError(
            "timeout", waits if self._delays else self._runtime.mechanism.full, status=504
        )

    def _give_up(self, late: list[int]) -> list[int]:
        """Fail tasks whose own time is over; which tasks begin then in this process."""
        error = self._located(too_late(self._names(late)), late)
        given_up, in_processes = list[int](), dict[int, list[int]]()
        for number in late:
            place = self._part.place_of[number]
            goes_on = self._engine.goes_on or self._may_begin_again(number)
            if isinstance(place, int) and place in self._taken and goes_on:
                in_processes.setdefault(place, []).append(number)
            else:
                given_up.append(number)
        for process, its in in_processes.items():
            self._limits.update(dict.fromkeys(its, self._deadline))  # they fail when it has ended
            died = ProcessDiedError("was killed, as a task of it hung")
            self._lose(process, died, its, error)
        for number in given_up:
            if run := self._runs.pop(number, None):
                self._runtime.threads.give_up(run)
                run.cancel()
            self._handler_begins(number)
        self._count_failures(given_up, error.code)
        return self._failed(given_up, error)

    def _lose(
        self,
        number: int,
        died: ProcessDiedError,
        late: Collection[int] = (),
        error: TaskError | None = None,
    ) -> None:
        """Go on without a process; what it had to answer begins again, or fails, when it has ended.

        Those that were `late` fail with `error`.
        """
        process = self._taken.pop(number).process
        self._held_back[number] = []
        self._runtime.loop.forget(process)
        self._runtime.threads.start(partial(self._bury, number, process, died, late, error))

    def _bury(
        self,
        number: int,
        process: Process,
        died: ProcessDiedError,
        late: Collection[int],
        error: TaskError | None,
    ) -> None:
        failure = self._died(process, died)
        self._give(number, process)

        def handle() -> None:
            held_back = self._held_back.pop(number)
            self._count_failures(process.owed.intersection(late), (error or failure).code)
            self._count_failures(process.owed.difference(late), failure.code)
            streaming = [(each, self._attempts.ended(each)) for each in sorted(process.owed)]
            lost = {each for each, attempt in streaming if attempt is None} & self._unanswered()
            again = {
                task
                for task in lost
                if self._may_begin_again(task) and not (self._engine.goes_on and task in late)
            }
            begins = self._failed(lost.intersection(late) - again, error or failure)
            begins += self._failed(lost - again, failure)
            self._note_again(again)
            call = self._engine.again(number, again, self.data)
            if call.tasks:
                self._call_process(number, call)
            for call in held_back:
                self._call_process(number, call)
            for each, attempt in streaming:
                if attempt is not None:
                    self._limits.pop(each, None)
                    self.broke(each, attempt, failure)
            self._begin_due()
            self._start_here(begins)

        self.event(handle)

    def _may_begin_again(self, number: int) -> bool:
        if self._client and self._client.begun and number == self._runtime.wrap.answers:
            return False
        attempt = self._attempts.ran_in(number)
        if attempt is not None:
            return attempt + 1 < self._runtime.wrap.attempts
        return self._begun_again.get(number, 0) + 1 < self._runtime.wrap.attempts

    def _note_again(self, numbers: Iterable[int]) -> None:
        """Tasks begin once more."""
        now = time.monotonic()
        for number in numbers:
            self._begun_again[number] = self._begun_again.get(number, 0) + 1
            if number in self._limits:  # else it had only been called for
                self._limits[number] = self._limit(number, now)
                self._wake_at(self._limits[number])

    def _unanswered(self) -> Set[int]:
        """What has begun or may still begin, of a workflow that decides only what has begun."""
        left = self._engine.left
        return self._limits.keys() if isinstance(left, bool) else left

    def _failed(self, numbers: Iterable[int], error: TaskError) -> list[int]:
        """Tasks have failed; which begin in this process then. Raises the error if none can."""
        begins = list[int]()
        for number in numbers:
            if self._limits.pop(number, None) is not None:  # else it was given up
                results = list[Result]()
                is_told = self._began is not None or number in self._part.gives
                if is_told and self._runtime.wrap.runs(number):  # another wrap waits for it, say
                    results.append(self._failure(number, error))
                step = self._engine.failed(number, error)
                self._results += results
                begins += self._follow(step)
        return begins

    def _ended(self, results: Iterable[Result]) -> list[int]:
        """Take in results; which tasks begin in this process."""
        steps, given = list[Step](), list[Result]()
        for result in results:
            if result.place is not None and self._into_buckets is not None:
                self._into_buckets(result)
                continue
            if self._limits.pop(result.task, None) is None:
                continue  # it was given up, or has answered before its process was lost
            attempt = self._attempts.ended(result.task)
            if attempt is not None and result.error and result.error["code"] == LOST:
                self.broke(result.task, attempt, TaskError.from_dict(result.error, status=500))
                continue
            if attempt and not result.error and result.task not in self._unanswered():
                continue  # it ran once more for what reads its streams, or writes them
            self._results.append(result)
            if result.wrap == self._runtime.wrap.name:  # else it is counted there
                self._runtime.metrics.ran(result)
            output = result.output
            if self.peers is not None:
                self.here.add(result.task)
                given.append(result)
            elif result.task not in self._part.gives:
                result.output = None
            if result.error is not None:
                error = TaskError.from_dict(result.error, status=500)
                steps.append(self._noted(self._engine.failed(result.task, error)))
                continue
            if output is not None and not self._engine.goes_on:
                self.data.add({result.task: output})
            # One may begin another one whose result is here already.
            steps.append(self._noted(self._engine.ended(result.task, output)))
            if self.data.large:
                self._release(result.task)
        if self.peers is not None:
            self.peers.gave(self, given, last=not self._engine.left)
        self._begin_due()
        return self._do(self._engine.together(steps)) if steps else []

    def _release(self, ended: int) -> None:
        """Keep no longer what only tasks need that have ended, and never run again.

        A task may run again whose object is not here while one that is not such needs it.
        """
        part, data = self._part, self.data
        if isinstance(part, Placement):
            return
        # Of what live streams connect, none is settled before all are, if that is ever known here.
        waiting = sorted(part.components.get(ended, {ended}))
        if not self._may_settle(waiting):
            return
        while waiting:
            task = waiting.pop()
            if task not in data and not self._settled.issuperset(part.users.get(task, ())):
                continue
            self._settled.add(task)
            for key in keys(part.sources[task]):
                if key in data:
                    kept = key in part.gives or (key is None and self.peers is not None)
                    if key in data.large and not kept and self._settled.issuperset(part.users[key]):
                        data.drop(key)
                elif key is not None and key not in self._settled:
                    waiting.append(key)

    def _may_settle(self, tasks: Collection[int]) -> bool:
        if len(tasks) == 1:
            return True
        unanswered = self._unanswered()
        return all(each in self._part.place_of and each not in unanswered for each in tasks)

    def _count_failures(self, numbers: Iterable[int], code: str) -> None:
        """Have monitoring know of tasks here that ended without a result."""
        wrap = self._runtime.wrap
        for number in numbers:
            here = not isinstance(self._part.place_of.get(number), str)
            if here and number in self._limits and number not in wrap.emits:
                self._runtime.metrics.run_failed(wrap.function_of(number), code)

    def all_results(self, error: TaskError) -> list[Result]:
        """All that is known of what ran here, where the execution has failed with `error`.

        Of the tasks that have begun and not ended, those that `error` names have it.
        """
        wrap, began = self._runtime.wrap, self._began or {}
        function, code = error.function, error.code
        known = any(
            (each.error["function"], each.error["code"]) == (function, code)
            for each in self._results
            if each.error is not None
        )
        failed = set() if known else set((function or "").split(", "))
        unended = began.keys() - {each.task for each in self._results} - wrap.emits.keys()
        return self._results + [
            self._failure(number, error if wrap.function_of(number) in failed else _UNENDED)
            for number in sorted(unended)
            if wrap.runs(number)
        ]

    def _failure(self, number: int, error: TaskError) -> Result:
        wrap, now = self._runtime.wrap, time.monotonic()
        function, ident = wrap.function_of(number), self.ident.number
        began, place = (self._began or {}).get(number, now), self._part.place_of.get(number)
        process = place if isinstance(place, int) else MAIN
        return Result(
            *(ident, number, function, wrap.name, process, began, now),
            error=error.as_dict(redacted),
        )

    def _call_wraps(self) -> list[threading.Event]:
        """Have other wraps called by threads; each event is set when a call is on its way."""
        events = list[threading.Event]()
        uncalled, self._uncalled = self._uncalled, []
        for wrap, request in uncalled:
            sent = threading.Event()
            turn = _Turn(asks=(wrap, request, sent.set))
            turn.run = self._runtime.threads.start(partial(self._run_in_turn, turn))
            events.append(sent)
        return events

    def _ask(self, turn: _Turn, wrap: str, request: Request, sent: Callable[[], None]) -> None:
        try:
            results = self._runtime.transport.call(wrap, request, self._deadline, sent)
        except Exception as cause:
            error = (
                cause if isinstance(cause, TaskError) else TaskError("remote", f"{wrap}: {cause}")
            )
            sent()  # its waiter has the lock, without which there is no event
            error.located(self._names(request.tasks) or None, wrap)
            self.event(lambda: self._go_on(turn, self._failed(request.tasks, error)))
        else:
            sent()
            if self.over and self._runtime.spans is not None:
                self._runtime.spans.part(self.ident, results)  # nobody else tells them any more
            self.event(lambda: self._go_on(turn, self._ended(results)))

    def _call_process(self, number: int, call: Call) -> None:
        if number in self._held_back:  # what it needs may have to be made again
            self._held_back[number].append(call)
            return
        taken = self._taken.get(number) or self._take(number, call)
        # What it has run before, it may have dropped what it needed for.
        needs = [key for key in call.needs if call.repeated or key not in taken.has]
        taken.has.update(needs)
        taken.rest -= 0 if call.repeated else len(call.tasks)
        objects = {key: self.data[key] for key in needs}
        process = taken.process
        # What may be called for once more is not to wait until something else has ended.
        alone = not self.live and (not taken.rest or number in self._part.in_order)
        process.post(
            Request(
                *(self.ident, call.tasks, objects, call.gives, taken.rest, alone, number),
                live=self.live,
                piecewise=self.is_piecewise,
            )
        )
        if taken.watched:
            self._runtime.loop.renew(process)
        elif process.sending:
            self._watch([number])
        else:
            self._called[process.fileno()] = number

    def _take(self, number: int, call: Call) -> _Taken:
        asked = time.monotonic()
        try:
            process = self._runtime.mechanism.take(number - 1)
        except OSError as error:
            failure = TaskError(_DIED, f"no process could be had: {error}")
            raise self._located(failure, call.tasks) from error
        taken = _Taken(process, asked, self._part.tasks_to_come(number))
        self._taken[number] = taken
        return taken

    def _watch(self, numbers: Iterable[int]) -> None:
        """Have the loop wait for processes, unless they have answered all meanwhile."""
        for number in numbers:
            taken = self._taken.get(number)
            if taken is not None and taken.process.owed and not taken.watched:
                ready = partial(self._process_ready, number)
                self._runtime.loop.watch(
                    taken.process,
                    lambda *how, ready=ready: self._from_loop(partial(ready, *how)),
                    once=self._engine.evaluates,
                )
                taken.watched = True

    def _process_ready(self, number: int, writable: bool, readable: bool) -> list[int]:
        taken = self._taken.get(number)
        if taken is None:
            return []
        if writable:
            taken.process.flush()
        begins = self._received(number) if readable else []
        if taken.watched and self._taken.get(number) is taken and self._outcome is None:
            self._runtime.loop.renew(taken.process)
        return begins

    def _received(self, number: int) -> list[int]:
        """Take in what a process has answered; which tasks begin in this process."""
        taken = self._taken[number]
        process = taken.process
        try:
            results = process.receive()
        except ProcessDiedError as error:
            process.owed.update(process.owed or self._part.tasks_at(number))
            if self._engine.goes_on or all(map(self._may_begin_again, process.owed)):
                self._lose(number, error)
            else:
                self._outcome = partial(self._died, process, error)
                self._count_failures(process.owed, _DIED)
            return []
        for result in results:
            if result.ready is not None:
                result.asked = taken.asked
                # A worker of a pool was there before its first request.
                result.ready = max(result.ready, taken.asked)
            taken.has.add(result.task)
        begins = self._ended(results)
        if not process.owed:
            if taken.watched:
                self._runtime.loop.forget(process)
                taken.watched = False
            if not taken.rest:
                del self._taken[number]
                self._give(number, process)
        return begins

    def _give(self, number: int, process: Process) -> None:
        self._runtime.mechanism.give(number - 1, process, sound=not process.owed)

    def _died(self, process: Process, error: ProcessDiedError) -> TaskError:
        """What became of a process; to ask for it can take a while."""
        ending = str(error) or process.end()
        message = f"the process of {self._names(process.owed)} {ending}"
        return self._located(TaskError(_DIED, message), process.owed)

    def _start_here(self, numbers: Iterable[int]) -> None:
        """Run tasks as threads of this process; the loop and threads wait for the others."""
        if self._called:
            self._watch(self._called.values())
            self._called.clear()
        self._call_wraps()
        self._waiting.extend(numbers)
        self._call()

    def _call(self) -> None:
        """Have a thread come to the tasks that wait, unless one of them is being prepared.

        Each thread calls the next just before the handler that it runs. So tasks begin in the order
        of the plan, each when the handler before lets the GIL go, and none waits for another to
        end. Few threads run what is short, one task after another, which saves wakes.
        """
        if self._waiting and not self._coming and self._preparing is None:
            self._coming = True
            turn = _Turn()
            name = self._runtime.wrap.function_of(self._waiting[0])
            turn.run = self._runtime.threads.start(partial(self._come, turn), name)

    def _come(self, turn: _Turn) -> None:
        """Take a task in the thread that has been called."""
        self.event(self._came, turn)
        self._run_in_turn(turn)

    def _came(self, turn: _Turn) -> None:
        self._coming = False
        self._take_task(turn)

    def _take_task(self, turn: _Turn) -> bool:
        """Have a thread run the first task that waits; whether there is one that may begin."""
        while self._waiting and self._preparing is None:
            number = self._waiting.popleft()
            if number in self._limits:  # else it has been given up
                turn.following = number
                if turn.run is not None:
                    turn.run.name = self._runtime.wrap.function_of(number)
                    self._runs[number] = turn.run
                self._preparing = number if self._waiting else None
                return True
        return False

    def _handler_begins(self, number: int) -> None:
        """A task has got to its handler, or never will: the next one may begin if it was prepared.

        The lock keeps others from taking a task while a thread is started, which lets the GIL go.
        """
        if self._preparing == number:
            self._preparing = None
            self._call()

    def _run_in_turn(self, turn: _Turn) -> None:
        """Do in this thread what is next, and what begins by its end or within a moment of it."""
        sink = self._runtime.sink
        while True:
            if sink is not None:
                sink.make_room()  # what this thread has given may be above the quota
            while turn.awaits and self._outcome is None:
                self._await_processes(turn)
            if turn.following is not None:
                self._run(turn, turn.following)
            elif turn.asks is not None:
                asks, turn.asks = turn.asks, None
                self._ask(turn, *asks)
            else:
                return

    def _run(self, turn: _Turn, number: int) -> None:
        wrap, functions = self._runtime.wrap, self._runtime.functions
        given = partial(self.data.resolve, wrap.graph.source_of(number))
        emitted = partial(self.event, self._emitted)
        opens = None if self._broker is None else self._broker.open
        client = None if self._client is None else self._client.open
        access = Access(self.ident.number, opens, self.data.resolve, client)
        begins = None
        if number == self._preparing:
            begins = partial(self.event, self._handler_begins, number)
        result = tasks.run(
            number, given, self.ident, MAIN, emitted, access, begins, wrap, functions
        )
        turn.following = None
        self.event(partial(self._ended_here, turn, result))

    def _emitted(self, result: Result) -> None:
        """A task that runs here gave one of its outputs."""
        self._start_here(self._ended([result]))

    def _ended_here(self, turn: _Turn, result: Result) -> None:
        if self._runs.pop(result.task, None) is not None:  # else it was given up
            self._go_on(turn, self._ended([result]))

    def _go_on(self, turn: _Turn, begins: list[int]) -> None:
        """Have this thread run the first task that begins; if none does, wait for others."""
        self._waiting.extend(begins)
        if not self._take_task(turn):
            turn.awaits |= self._called
            self._called.clear()
            if self._uncalled and not turn.awaits:
                turn.asks = (*self._uncalled.pop(), _nothing)
            self._call_wraps()
            return
        self._called |= turn.awaits
        turn.awaits.clear()
        self._start_here(())

    def _await_processes(self, turn: _Turn) -> None:
        """Take in what comes within a moment; else leave it to the loop."""
        poll = select.poll()
        for descriptor in turn.awaits:
            poll.register(descriptor, select.POLLIN)
        ready = poll.poll(_MOMENT_MS)
        if not ready:
            turn.awaits, left = {}, turn.awaits
            self.event(partial(self._watch, left.values()))
        for descriptor, _ in ready:
            number = turn.awaits.pop(descriptor, None)
            if number is not None:
                self.event(partial(self._answered, turn, descriptor, number))

    def _answered(self, turn: _Turn, descriptor: int, number: int) -> None:
        if number not in self._taken:
            return
        begins = self._received(number)
        taken = self._taken.get(number)
        if taken is not None and taken.process.owed:
            self._called[descriptor] = number
        self._go_on(turn, begins)

    def _check_threads(self) -> None:
        """Start nothing where too many threads have not come back."""
        lost = self._runtime.threads.too_many()
        if lost:
            names = ", ".join(sorted({run.name for run in lost}))
            message = (
                f"{len(lost)} threads of {names} go on past their time: mend what they wait for"
            )
            raise TaskError("threads-lost", message, function=names, status=503)

    def _names(self, numbers: Iterable[int]) -> str:
        return self._runtime.wrap.names(numbers)

    def _located(self, error: TaskError, numbers: Iterable[int]) -> TaskError:
        return error.located(self._names(numbers) or None, self._runtime.wrap.name)


def _raise(error: TaskError) -> None:
    raise error


def _nothing() -> None:
    """Nobody waits until a call is on its way."""


def too_late(what: str) -> TaskError:
    """What becomes of what takes too long."""
    return TaskError("timeout", f"{what} did not answer in time", status=504)

"""The rules of one execution in one wrap, as a pure state machine.

Events go in and commands come out; see `wrap.core.events` and `wrap.core.commands`. The rules set
the timeouts of tasks, retry tasks after a loss, release objects, and fail the execution. The
program decides which task runs next.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from typing import TYPE_CHECKING, Any

from wrap.core import commands as do
from wrap.core import events as on
from wrap.core.commands import Command
from wrap.core.errors import TaskError, too_late
from wrap.core.events import Answer, Event, Outputs
from wrap.core.holdings import Holdings
from wrap.core.limits import Limits, TaskLimits, expired
from wrap.core.program import MAIN, Program, Step
from wrap.core.recovery import STREAM_LOST, Attempts, may_retry
from wrap.core.retry import Retries
from wrap.core.workers import Workers

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Wrap

#: The code of the error of a task whose worker has ended.
WORKER_DIED = "process-died"


class Run:
    """The state of one execution in one wrap.

    Args:
        needs: whether this wrap needs the output of another wrap's task, not only its end. None if
            no other wrap takes part.
        is_traced: whether unfinished tasks are reported too, so that start times are recorded.
    """

    def __init__(
        self,
        program: Program,
        deployment: Wrap,
        limits: Limits,
        needs: Callable[[int], bool] | None = None,
        is_traced: bool = False,
    ) -> None:
        self.program = program
        self.begun = False
        self._commands: list[Command] = []
        self._limits = TaskLimits(program, deployment, limits, self._commands)
        #: The limit of each task that has begun and not ended.
        self.limits = self._limits.until
        #: The start time of each task; None unless the execution is traced.
        self.began: dict[int, float] | None = {} if is_traced else None
        #: The tasks that have ended here, and tasks of other wraps that are known to have ended.
        self.here: set[int] = set()
        #: The timers of the program that have not expired.
        self.delays: set[int] = set()
        self._workers = Workers(self._commands)
        #: Worker process -> the calls that wait until this lost worker has ended.
        self.held_back = self._workers.held_back
        self._part = program.part
        self._deployment = deployment
        self._deadline = limits.deadline
        self._needs = needs
        self._is_live = program.part.live
        self._has_others = needs is not None or program.part.calls_wraps
        #: The attempts of the components that live streams connect.
        self.attempts = Attempts(program.part.components)
        self._retries = Retries(deployment, self.attempts)
        #: Outputs of other wraps that arrived before the execution began.
        self._early: list[Outputs] = []
        self._holdings = Holdings(program.part, limits.large_from, needs is not None)

    def handle(self, event: Event) -> list[Command]:
        """Return the commands that follow from `event`."""
        try:
            _HANDLERS[type(event)](self, event)
        except TaskError as error:
            self._commands.append(do.Finish(error))
        commands = self._commands[:]
        self._commands.clear()
        return commands

    def unanswered(self) -> Set[int]:
        return self.program.unanswered(self.limits.keys())

    def is_over(self, others_run: bool) -> bool:
        """Return whether the program is complete, no other wrap runs, and no attempt is pending.

        A task whose streams broke is about to run again, although it has ended before.
        """
        pending = self._needs is not None and self.attempts.pending
        return self.program.is_complete and not others_run and not pending

    def _on_began(self, event: on.Began) -> None:
        self.begun = True
        for key, size in event.sizes.items():
            self._holdings.add(key, size)
        steps = [self._noted(self.program.start(event.objects), event.now)]
        steps += [self._noted(self._taken_in(each), event.now) for each in self._early]
        self._follow(self.program.together(steps))

    def _on_arrived(self, event: on.Arrived) -> None:
        if self.begun:
            self._follow(self._noted(self._taken_in(event.outputs), event.now))
        else:
            self._early.append(event.outputs)

    def _on_ended(self, event: on.Ended) -> None:
        steps: list[Step] = []
        given: list[Answer] = []
        for answer in event.answers:
            step = self._ended(answer, event.now, given)
            if step is not None:
                steps.append(self._noted(step, event.now))
        if given:
            self._commands.append(do.Give(given, last=self.program.is_complete))
        self._begin_due(event.now)
        if steps:
            self._follow(steps[0] if len(steps) == 1 else self.program.together(steps))

    def _on_offloaded(self, event: on.Offloaded) -> None:
        for answer in event.answers:
            if answer.error is not None:
                raise TaskError.from_dict(answer.error, status=500)
            self.here.add(answer.task)
            if answer.output is not None:
                self._keep(answer.task, answer.output)
            self.program.ended(answer.task, answer.output)
        self._commands.append(do.AcceptAll(event.answers))
        if self._needs is not None:
            self._commands.append(do.Give(event.answers, last=True))

    def _on_ready(self, event: on.Ready) -> None:
        step = event.step
        if event.renewed:  # tasks that a worker has run meanwhile do not begin
            begins = [number for number in step.begins if number in self.limits]
            step = self._noted(step._replace(begins=begins), event.now)
        self._begin(step)

    def _on_delay_passed(self, event: on.DelayPassed) -> None:
        if event.number in self.delays:  # else the timer was cancelled meanwhile
            self.delays.remove(event.number)
            self._follow(self._noted(self.program.due(event.number), event.now))

    def _on_time_passed(self, event: on.TimePassed) -> None:
        now = event.now
        late = self._limits.passed(now)
        places = {number: self._part.place_of[number] for number in late}
        own = [number for number in late if not isinstance(places[number], str)]
        last = self._deadline + event.grace_s
        if late and now < self._deadline:
            self._give_up(late, event)
        elif own:
            # A task that waits at a stream is not to blame if the task at the other end is gone.
            if event.gone is not None:
                raise event.gone
            error = located(self._deployment, too_late(self._deployment.names(own)), own)
            self._count_failures(own, error.code)
            raise error
        elif late:
            wraps = sorted({str(places[number]) for number in late})
            names = self._deployment.names(late) or None
            raise too_late(", ".join(wraps)).located(names, wraps[0])
        if not self.limits and now >= last:
            others = self._needs is not None and self.begun
            raise expired(others, bool(self.delays), event.late, event.full)
        until = self._deadline if now < self._deadline else last
        self._limits.wake_at(min(self.limits.values(), default=until))

    def _on_worker_lost(self, event: on.WorkerLost) -> None:
        again = (self._retries.are_left(each, event.answering) for each in event.owed)
        if self.program.decides or all(again):
            self._workers.lose(event.process)
        else:
            self._count_failures(event.owed, WORKER_DIED)
            self._commands.append(do.FailByWorker(event.process))

    def _on_worker_ended(self, event: on.WorkerEnded) -> None:
        owed, late = set(event.owed), set(event.late)
        failure, error = event.failure, event.error or event.failure
        calls = self.held_back.pop(event.process)
        self._count_failures(owed & late, error.code)
        self._count_failures(owed - late, failure.code)
        streaming = [(each, self.attempts.ended(each)) for each in sorted(owed)]
        lost = {each for each, attempt in streaming if attempt is None} & self.unanswered()
        again = {
            each
            for each in lost
            if self._retries.are_left(each, event.answering)
            and not (self.program.decides and each in late)
        }
        self._fail(sorted(lost & late - again), error, event.now)
        self._fail(sorted(lost - late - again), failure, event.now)
        for number in again:
            self._retries.count(number)
            if number in self.limits:  # else the task was called for and had not begun
                self._limits.expect([number], event.now)
        first = self.program.again(event.process, again, self._holdings)
        for call in [first, *calls] if first.tasks else calls:
            self._workers.call(call)
        for each, attempt in streaming:
            if attempt is not None:
                self.limits.pop(each, None)
                self._broke(each, attempt, failure, event.now)
        self._begin_due(event.now)

    def _taken_in(self, outputs: Outputs) -> Step:
        if self._needs is None:
            raise TaskError("other-plan", "nothing of other wraps is awaited here", status=400)
        new: list[int] = []
        for task, output in outputs.items():
            # The notice that a task has ended may arrive before its object.
            if task not in self.here and (output is not None or not self._needs(task)):
                new.append(task)
                if output is not None:
                    self._keep(task, output)
        self.here.update(new)
        return self.program.arrived(new)

    def _ended(self, answer: Answer, now: float, given: list[Answer]) -> Step | None:
        """Process an answer and return the next step; None if the answer no longer counts."""
        task, output, program = answer.task, answer.output, self.program
        if self.limits.pop(task, None) is None:
            return None  # the task was given up, or had answered before its worker was lost
        attempt = self.attempts.ended(task) if self._is_live else None
        if attempt is not None and answer.error and answer.error["code"] == STREAM_LOST:
            self._broke(task, attempt, TaskError.from_dict(answer.error, status=500), now)
            return None
        if attempt and not answer.error and task not in self.unanswered():
            return None  # the task ran again for the tasks that its streams connect
        is_shared = self._needs is not None
        self._commands.append(do.Accept(answer, is_shared or task in self._part.gives))
        if is_shared:
            self.here.add(task)
            given.append(answer)
        if answer.error is not None:
            return program.failed(task, TaskError.from_dict(answer.error, status=500))
        if output is not None and not program.decides:
            self._keep(task, output)
        step = program.ended(task, output)  # a new task's result may be here already
        if self._holdings.any_large and not program.decides:
            self._commands += map(do.Drop, self._holdings.release(task, self.unanswered()))
        return step

    def _fail(self, tasks: Iterable[int], error: TaskError, now: float) -> None:
        """Fail `tasks`. Raises the error if the execution fails with them."""
        for number in tasks:
            if self.limits.pop(number, None) is None:
                continue  # the task was given up
            is_told = self.began is not None or number in self._part.gives
            step = self.program.failed(number, error)
            if is_told and self._deployment.runs(number):  # for example, another wrap waits for it
                self._commands.append(do.RecordFailure(number, error))
            self._follow(self._noted(step, now))

    def _noted(self, step: Step, now: float) -> Step:
        """Set the limits of the tasks that `step` begins, and record their attempts."""
        if step.begins:
            self._limits.expect(step.begins, now)
            if self.began is not None:
                self.began.update(dict.fromkeys(step.begins, now))
            if self._is_live:
                self.attempts.begin(step.begins)
        return step

    def _follow(self, step: Step) -> None:
        for number in step.cancelled:
            self.delays.remove(number)
            self._commands.append(do.CancelTimer(number))
        for number, seconds in step.delays:
            self.delays.add(number)
            self._commands.append(do.SetTimer(number, seconds))
        if not self._has_others:
            self._begin(step)
            return
        self._commands += [do.CallWrap(each) for each in step.calls if isinstance(each.place, str)]
        if step.begins:
            self._commands.append(do.Begin(step))

    def _begin(self, step: Step) -> None:
        for call in step.calls:
            if isinstance(call.place, int) and call.place != MAIN:
                self._workers.call(call)
        # Tasks that another wrap was called for may have ended meanwhile; they have no place then.
        here = [number for number in step.begins if self._part.place_of.get(number) == MAIN]
        if here:
            self._commands.append(do.StartTasks(here))

    def _give_up(self, late: list[int], event: on.TimePassed) -> None:
        """Fail tasks after their own timeouts; in workers, after the end of the worker."""
        error = located(self._deployment, too_late(self._deployment.names(late)), late)
        given_up, in_workers = list[int](), dict[int, list[int]]()
        for number in late:
            place = self._part.place_of[number]
            is_called = isinstance(place, int) and place != MAIN and place not in self.held_back
            goes_on = self.program.decides or self._retries.are_left(number, event.answering)
            if isinstance(place, int) and is_called and goes_on:
                in_workers.setdefault(place, []).append(number)
            else:
                given_up.append(number)
        for process, tasks in in_workers.items():
            self._limits.until_deadline(tasks)
            self._workers.lose(process, tasks, error)
        self._commands += map(do.Abandon, given_up)
        self._count_failures(given_up, error.code)
        self._fail(given_up, error, event.now)

    def _count_failures(self, tasks: Iterable[int], code: str) -> None:
        place_of, emits = self._part.place_of, self._deployment.emits
        counted = [
            number
            for number in tasks
            if number in self.limits
            and number not in emits
            and not isinstance(place_of.get(number), str)
        ]
        if counted:
            self._commands.append(do.CountFailures(counted, code))

    def _broke(self, task: int, attempt: int, error: TaskError, now: float) -> None:
        """Report broken streams to the coordinator. Without one, begin another attempt or fail."""
        if self._needs is not None:
            self._commands.append(do.ReportBroken(task, attempt, error))
        elif may_retry(attempt, self._deployment.attempts):
            self._next_attempt(task, attempt + 1, now)
        else:
            self._commands.append(do.FailLater(error))

    def _next_attempt(self, task: int, attempt: int, now: float) -> None:
        """Begin another attempt of the tasks that live streams connect with `task`.

        Tasks of earlier attempts have to answer first. They answer when their streams break off.
        """
        if self._is_live and self.attempts.next(task, attempt):
            self._commands.append(do.BeginAttempt(self.attempts.components[task], attempt))
            self._begin_due(now)

    def _begin_due(self, now: float) -> None:
        """Restart the tasks that no longer wait for a task of an earlier attempt."""
        if self._is_live and (due := self.attempts.due()):
            self._begin(self._noted(self.program.repeat(due), now))

    def _keep(self, task: int, output: on.Output) -> None:
        self._holdings.add(task, output.size)
        self._commands.append(do.Keep(task, output))


def located(deployment: Wrap, error: TaskError, tasks: Iterable[int]) -> TaskError:
    """Return the same error, with the functions of `tasks` and the name of the wrap."""
    return error.located(deployment.names(tasks) or None, deployment.name)


_HANDLERS: dict[type, Callable[[Run, Any], None]] = {
    on.Began: Run._on_began,
    on.Arrived: Run._on_arrived,
    on.Ended: Run._on_ended,
    on.Failed: lambda run, event: run._fail(event.tasks, event.error, event.now),
    on.Offloaded: Run._on_offloaded,
    on.Ready: Run._on_ready,
    on.HeldBack: lambda run, event: run._limits.until_deadline(event.tasks),
    on.DelayPassed: Run._on_delay_passed,
    on.TimePassed: Run._on_time_passed,
    on.WorkerLost: Run._on_worker_lost,
    on.WorkerEnded: Run._on_worker_ended,
    on.AttemptBegan: lambda run, on: run._next_attempt(on.task, on.attempt, on.now),
    on.StreamsBroke: lambda run, on: run._broke(on.task, on.attempt, on.error, on.now),
}

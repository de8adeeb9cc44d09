"""Runs one stage: remote wraps first, then further processes in order, then our own threads.

All of them are awaited at once, by one selector, so that no size of result and no order of
arrival can block another. The first failure fails the stage. What is still running then is
stopped: processes are killed, as they share nothing with us; threads are left to end by
themselves until the deadline, and only then interrupted, as that can hurt what they share.
"""

from __future__ import annotations

import math
import selectors
import threading
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from wrap import task
from wrap.errors import TaskError
from wrap.inbox import Inbox
from wrap.messages import Job, Result
from wrap.process import Process, ProcessDiedError
from wrap.runtime import Runtime
from wrap.threads import Run
from wrap.transport import GRACE_S

#: How long a stage's own tasks wait until the calls of remote wraps are sent, in seconds;
#: connecting, or a large input, can take longer.
_SENDING_S = 0.02

Processes = Sequence[Sequence[int]]
Remotes = Mapping[str, Sequence[int]]


def run_stage(
    runtime: Runtime, job: Job, processes: Processes, remotes: Remotes, deadline: float
) -> list[Result]:
    """The results of all tasks of `job`.

    Parameters
    ----------
    processes
        The tasks of this wrap's processes; the first is the main process.
    remotes
        Remote wrap -> its tasks.
    deadline
        Seconds of the monotonic clock.

    Raises
    ------
    TaskError
        The first task that failed, or ``timeout``.
    """
    stage = _Stage(runtime, job, deadline)
    try:
        if processes and processes[0]:
            stage.check_threads()
        for wrap, tasks in remotes.items():
            stage.call(wrap, job.part(tasks))
        stage.send()
        for number, tasks in enumerate(processes[1:], start=1):
            stage.hand_out(job.part(tasks, process=number))
        for number in processes[0] if processes else ():
            stage.start(number)
        return stage.gather()
    finally:
        stage.stop()


@dataclass
class _Busy:
    """A further process that has been handed a part of the job."""

    process: Process
    slot: int
    asked: float


class _Stage:
    """One run of a stage."""

    def __init__(self, runtime: Runtime, job: Job, deadline: float) -> None:
        self._runtime = runtime
        self._job = job
        self._deadline = deadline
        self._inbox: Inbox[list[Result] | TaskError] = Inbox()
        self._results: list[Result] = []
        self._busy: list[_Busy] = []
        self._runs: dict[int, Run] = {}
        self._limits: dict[int, float] = {}
        self._remotes: dict[int, str] = {}
        self._sent: list[threading.Event] = []

    def call(self, wrap: str, job: Job) -> None:
        """Have a remote wrap run its part."""
        self._remotes |= dict.fromkeys(job.inputs, wrap)
        sent = threading.Event()
        self._sent.append(sent)
        work = partial(_call, self._runtime, wrap, job, self._deadline, self._inbox, sent)
        self._runtime.threads.start(work)

    def send(self) -> None:
        """Let the calls be sent before anything here computes.

        A thread that computes keeps the GIL for a switch interval, and sending needs it several
        times.
        """
        limit = time.monotonic() + _SENDING_S
        for sent in self._sent:
            sent.wait(max(0.0, limit - time.monotonic()))

    def hand_out(self, job: Job) -> None:
        """Have a further process run its part."""
        slot = job.process - 1
        asked = time.monotonic()
        try:
            process = self._runtime.mechanism.take(slot, self._deadline)
        except TaskError as error:
            raise self._located(error, job.inputs) from error
        except OSError as error:
            failure = TaskError("process-died", f"no process could be had: {error}")
            raise self._located(failure, job.inputs) from error
        self._busy.append(_Busy(process, slot, asked))
        self._owe(job.inputs)
        process.post(job)

    def check_threads(self) -> None:
        """Start nothing where too many threads have not come back."""
        lost = self._runtime.threads.too_many()
        if lost:
            names = ", ".join(sorted({run.name for run in lost}))
            message = (
                f"{len(lost)} threads of {names} go on past their time: mend what they wait for"
            )
            raise TaskError("threads-lost", message, function=names, status=503)

    def start(self, number: int) -> None:
        """Run a task as a thread of this process."""
        self._owe((number,))
        work = partial(_run, self._runtime, number, self._job, self._inbox)
        name = self._runtime.wrap.tasks[number]
        self._runs[number] = self._runtime.threads.start(work, name)

    def _owe(self, tasks: Iterable[int]) -> None:
        """Note until when tasks of this wrap may run: their own limit counts from now."""
        wrap = self._runtime.wrap
        for number in tasks:
            seconds = wrap.timeouts_s.get(wrap.tasks[number])
            own = math.inf if seconds is None else time.monotonic() + seconds
            self._limits[number] = min(self._deadline, own)

    def gather(self) -> list[Result]:
        """Wait for all results."""
        with selectors.PollSelector() as selector:
            selector.register(self._inbox, selectors.EVENT_READ)
            for busy in self._busy:
                selector.register(busy.process, _events(busy.process), busy)
            while self._limits or self._remotes:
                for key, events in selector.select(self._patience()):
                    if key.data is None:
                        self._empty_inbox()
                    else:
                        self._exchange(selector, key.data, events)
        return self._results

    def _patience(self) -> float:
        """Seconds to wait. Raises TaskError when there are none left."""
        limits = self._limits
        limit = min(limits.values()) if limits else self._deadline + GRACE_S
        now = time.monotonic()
        if now < limit:
            return limit - now
        late = [number for number, its in limits.items() if its <= now]
        raise self._located(_late(self._names(late)), late) if late else self._late_remotes()

    def _late_remotes(self) -> TaskError:
        wraps = sorted(set(self._remotes.values()))
        functions = self._names(self._remotes) or None
        return _late(", ".join(wraps)).located(functions, self._job.stage, wraps[0])

    def _empty_inbox(self) -> None:
        for item in self._inbox.take():
            if isinstance(item, TaskError):
                raise item
            for result in item:
                self._runs.pop(result.task, None)
                self._limits.pop(result.task, None)
                self._remotes.pop(result.task, None)
            self._take(item)

    def _exchange(self, selector: selectors.PollSelector, busy: _Busy, events: int) -> None:
        if events & selectors.EVENT_WRITE:
            busy.process.flush()
            selector.modify(busy.process, _events(busy.process), busy)
        if not events & selectors.EVENT_READ:
            return
        try:
            results = busy.process.receive()
        except ProcessDiedError as error:
            owed = busy.process.owed
            message = f"the process of {self._names(owed)} {error}"
            raise self._located(TaskError("process-died", message), owed) from error
        for result in results:
            self._limits.pop(result.task, None)
            result.asked = busy.asked
        self._take(results)
        if not busy.process.owed:
            selector.unregister(busy.process)

    def _take(self, results: list[Result]) -> None:
        for result in results:
            result.text()
        self._results += results

    def stop(self) -> None:
        """Give back the processes; end what is still running."""
        self._inbox.close()
        for busy in self._busy:
            self._runtime.mechanism.give(busy.slot, busy.process, sound=not busy.process.owed)
        late = time.monotonic()
        for number, run in self._runs.items():
            self._runtime.threads.give_up(run)
            if self._limits[number] <= late:
                run.cancel()
            else:
                self._runtime.canceller.cancel_at(run, self._limits[number])

    def _names(self, tasks: Iterable[int]) -> str:
        return self._runtime.wrap.names(tasks)

    def _located(self, error: TaskError, tasks: Iterable[int]) -> TaskError:
        names = self._names(tasks) or None
        return error.located(names, self._job.stage, self._runtime.wrap.name)


def _late(what: str) -> TaskError:
    return TaskError("timeout", f"{what} did not answer in time", status=504)


def _events(process: Process) -> int:
    return selectors.EVENT_READ | (selectors.EVENT_WRITE if process.sending else 0)


def _run(runtime: Runtime, number: int, job: Job, inbox: Inbox[list[Result] | TaskError]) -> None:
    inbox.put([task.run(number, job, runtime.wrap, runtime.functions)])


def _call(
    runtime: Runtime,
    wrap: str,
    job: Job,
    deadline: float,
    inbox: Inbox[list[Result] | TaskError],
    sent: threading.Event,
) -> None:
    try:
        inbox.put(runtime.transport.call(wrap, job, deadline, sent.set))
    except Exception as cause:
        error = cause if isinstance(cause, TaskError) else TaskError("remote", f"{wrap}: {cause}")
        functions = runtime.wrap.names(job.inputs) or None
        inbox.put(error.located(functions, job.stage, wrap))
    finally:
        sent.set()

"""Runs firings of buckets: in the calling thread, or as an execution in a further process."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import nullcontext
from functools import partial
from math import inf
from typing import TYPE_CHECKING

from wrap.core.buckets.flow import Firing
from wrap.core.dag import Engine
from wrap.core.errors import TaskError, too_late
from wrap.core.limits import until
from wrap.core.program import MAIN, Key
from wrap.dispatch.event_objects import input_of
from wrap.dispatch.execution import Execution, Outcome
from wrap.dispatch.results import all_results
from wrap.dispatch.runtime import Runtime
from wrap.event_loop.alarm import Alarm
from wrap.event_loop.threads import Work, own_work
from wrap.functions import runner as tasks
from wrap.functions.task_io import Access
from wrap.net.messages import UNWATCHED, Ident, Result, Watch
from wrap.observe.trace_context import TraceContext
from wrap.values.inputs import Inputs
from wrap.values.value import Object

if TYPE_CHECKING:
    from wrap.dispatch.bucket_runs import BucketRuns

#: Functions of buckets have no streams.
_NO_STREAMS = Access(0, None, Inputs({}).resolve)


class FiringRun:
    """One run of a firing, which ends once."""

    def __init__(
        self, firing: Firing[str, Object], task: int, limit: float, buckets: BucketRuns
    ) -> None:
        self.firing = firing
        self.task = task
        #: The flow that fired. If the buckets have another flow by now, another replica owns the
        #: run.
        self.flow = buckets.flow
        self.over = False
        #: Its limit, in seconds of the monotonic clock.
        self.limit = limit
        #: The buckets, which get its outputs.
        self.buckets = buckets
        #: The work of its thread, if it runs in this process.
        self.work: Work | None = None


class FiringRuns:
    """The current runs.

    Args:
        deadline: the end of all runs, in seconds of the monotonic clock.
        watch, trace: what results record, and the trace that all runs are part of.
    """

    def __init__(
        self,
        runtime: Runtime,
        deadline: float,
        watch: Watch = UNWATCHED,
        trace: TraceContext | None = None,
    ) -> None:
        self._runtime = runtime
        self._deadline = deadline
        self._watch = watch
        self._trace = trace
        self._is_exported = trace is not None and trace.is_exported
        self._lock = threading.Lock()
        self._here = set[FiringRun]()
        self._alarm = Alarm(runtime.loop, self._look)

    def of(self, firing: Firing[str, Object], task: int, buckets: BucketRuns) -> FiringRun:
        """Return a run whose time begins now."""
        wrap = self._runtime.wrap
        own_s = wrap.timeouts_s.get(wrap.tasks[task], wrap.timeout_s)
        limit = until(time.monotonic(), self._deadline, own_s, wrap.timeout_s)
        return FiringRun(firing, task, limit, buckets)

    def begin(self, run: FiringRun) -> bool:
        """Begin a run; return whether this thread may begin another: it may soon be cancelled."""
        runtime, task, work = self._runtime, run.task, own_work()
        try:
            if runtime.wrap.process_of[task] == MAIN and not runtime.lost_threads.too_many():
                return self._run_here(run, work)
            part = runtime.wrap.part_of((task,), frozenset((task,)))
            deadline = until(time.monotonic(), self._deadline, runtime.wrap.timeout_s)
            ident = Ident(self._watch, trace=self._trace)
            execution = Execution(
                *(runtime, Engine(part), {}, ident, deadline, partial(_reply, run)),
                prepare=partial(_request, run.firing),
                into_buckets=partial(run.buckets.emitted, run),
            )
            execution.start(work)
        except TaskError as error:
            run.buckets.ended(run, error)
        except BaseException as error:  # for example, its thread is given up
            run.buckets.ended(run, TaskError("wrap-failed", f"{type(error).__name__}: {error}"))
            raise
        return True

    def forget(self, run: FiringRun) -> None:
        """Stop checking the limit of a run that has ended."""
        with self._lock:
            self._here.discard(run)

    def clear_idle_timer(self) -> None:
        """Clear the timer while nothing runs here, because it keeps all objects alive."""
        with self._lock:
            if not self._here:
                self._alarm.clear()

    def _run_here(self, run: FiringRun, work: Work | None) -> bool:
        """Run a task in this thread: an execution of its own would take as long again."""
        with self._lock:
            run.work = work
            self._here.add(run)
            self._alarm.set_for(run.limit)
        runtime, given = self._runtime, partial(input_of, run.firing)

        def emitted(result: Result) -> None:
            with work.undisturbed() if work is not None else nullcontext():
                run.buckets.emitted(run, result)

        result = tasks.run(
            *(run.task, given, Ident(self._watch, trace=self._trace), MAIN, emitted),
            *(_NO_STREAMS, None, runtime.wrap, runtime.functions),
        )
        runtime.metrics.ran(result)
        if result.error is None:
            return run.buckets.ended(run, [result])
        failed = [result] if self._is_exported else []
        return run.buckets.ended(run, TaskError.from_dict(result.error, status=500), failed)

    def _look(self) -> None:
        runtime = self._runtime
        with self._lock:
            self._alarm.clear()
            now = time.monotonic()
            late = [run for run in self._here if run.limit <= now]
            # Overdue threads may continue, as they cannot be killed. They need no further look.
            self._alarm.set_for(
                min((run.limit for run in self._here if run.limit > now), default=inf)
            )
        for run in late:
            function = runtime.wrap.tasks[run.task]
            error = too_late(function).located(function, runtime.wrap.name)
            if not run.buckets.ended(run, error):
                continue
            runtime.metrics.failed_runs.add(function, error.code)
            if run.work is not None:
                runtime.lost_threads.add(run.work)
                run.work.cancel()


def _request(firing: Firing[str, Object]) -> Mapping[Key, Object]:
    return {None: input_of(firing)}


def _reply(run: FiringRun, execution: Execution, outcome: Outcome) -> None:
    failed = list[Result]()
    if isinstance(outcome, TaskError) and execution.ident.is_exported:
        failed = all_results(execution, outcome)
    run.buckets.ended(run, outcome, failed)

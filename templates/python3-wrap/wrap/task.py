"""Runs one task: its handler, timed, with whatever goes wrong turned into an error."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from wrap import log, run_queue, styles
from wrap.declaration import Wrap
from wrap.errors import TaskError
from wrap.exits import Ended
from wrap.loader import Function
from wrap.messages import Job, Result
from wrap.probe import Probe
from wrap.redaction import redacted
from wrap.reference_loop import reference_s
from wrap.serving import OneProcess
from wrap.threads import Cancelled

#: Characters of an error that the answer has; the log has all.
_SHOWN = 1000


def run(task: int, job: Job, wrap: Wrap, functions: dict[str, Function]) -> Result:
    """Run task number `task` of `job` in this thread.

    Never raises but for `Cancelled`: that the task was given up is no answer to anybody.
    """
    function = functions[wrap.tasks[task]]
    begun = time.monotonic()
    result = Result(job.number, task, function.name, wrap.name, job.process, begun, 0.0)
    try:
        result.output = _call(function, task, job, result)
    except Cancelled:
        raise
    except BaseException as error:
        failure = _failure(error, function.name)
        result.error = failure.located(function.name, job.stage, wrap.name).as_dict()
    finally:
        log.end_lines()
    if not result.ended:
        result.ended = time.monotonic()
    return result


def _call(function: Function, task: int, job: Job, result: Result) -> str:
    text = job.inputs[task]
    arguments = styles.arguments(function, text)
    with OneProcess(), styles.surroundings(function, text):
        if job.watch.traced:
            value = _watched(function, arguments, task, job, result)
        else:
            value = _timed(function, arguments, result)
        return styles.output(function, value)


def _watched(
    function: Function, arguments: tuple[Any, ...], task: int, job: Job, result: Result
) -> Any:
    """What the handler answers; `result` also has what else `job` wants to know of it.

    Nothing but the handler runs under the probe, which would see it let go of the GIL.
    """
    before = reference_s() if job.watch.paced else None
    kept_waiting = run_queue.waited_s()
    try:
        if not job.watch.probed:
            with _marked(task):
                return _timed(function, arguments, result)
        with Probe() as probe:
            value = _timed(function, arguments, result)
        result.ticks = probe.ticks
        return value
    finally:
        result.delayed = run_queue.waited_s() - kept_waiting
        if before is not None:
            result.reference = (before, reference_s())


@contextmanager
def _marked(task: int) -> Iterator[None]:
    """Shows a tracer of this thread where the block begins and ends."""
    os.access(f"/chiron/begin/{task}", os.F_OK)
    try:
        yield
    finally:
        os.access(f"/chiron/end/{task}", os.F_OK)


def _timed(function: Function, arguments: tuple[Any, ...], result: Result) -> Any:
    """What the handler answers; `result` has the times of its begin and end."""
    result.started = time.monotonic()
    try:
        return function.handle(*arguments)
    finally:
        result.ended = time.monotonic()


def _failure(error: BaseException, function: str) -> TaskError:
    if isinstance(error, TaskError):
        return error
    log.report(function, error)
    if isinstance(error, SystemExit):
        plain = isinstance(error.code, int | str | None)
        code = redacted(repr(error.code) if plain else type(error.code).__name__)[:_SHOWN]
        call = error.call if isinstance(error, Ended) else "sys.exit"
        return TaskError("exited", f"the handler called {call}({code}): return instead")
    # Notes come after the line that names the error; a syntax error's source, indented, before it.
    lines = traceback.format_exception_only(error)
    named = next(line for line in lines if not line.startswith(" "))
    return TaskError("raised", redacted(named.splitlines()[0])[:_SHOWN])

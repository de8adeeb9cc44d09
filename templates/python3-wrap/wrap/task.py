"""Runs one task: its handler, timed, with whatever goes wrong turned into an error."""

from __future__ import annotations

import os
import time
import traceback
from typing import Any

from wrap import log, run_queue, styles
from wrap.declaration import Wrap
from wrap.errors import TaskError
from wrap.loader import Function
from wrap.messages import Job, Result
from wrap.probe import Probe
from wrap.threads import Cancelled

#: Characters of an error that the answer has; the log has all.
_SHOWN = 1000


def run(task: int, job: Job, wrap: Wrap, functions: dict[str, Function]) -> Result:
    """Run task number `task` of `job` in this thread.

    Never raises but for `Cancelled`: that the task was given up is no answer to anybody.
    """
    function = functions[wrap.tasks[task]]
    result = Result(task, function.name, wrap.name, job.process, time.monotonic(), 0.0)
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
    with styles.surroundings(function, text):
        if not job.probed:
            return styles.output(function, _handled(function, arguments, task, job, result))
        with Probe() as probe:
            value = _handled(function, arguments, task, job, result)
        result.ticks = probe.ticks
        return styles.output(function, value)


def _handled(
    function: Function, arguments: tuple[Any, ...], task: int, job: Job, result: Result
) -> Any:
    """What the handler answers; `result` has the times of its begin and end."""
    marked = job.traced and not job.probed  # markers let go of the GIL, which the probe sees
    kept_waiting = run_queue.waited_s() if job.traced else 0.0
    result.started = time.monotonic()
    if marked:
        os.access(f"/chiron/begin/{task}", os.F_OK)
    try:
        value = function.handle(*arguments)
    finally:
        if marked:
            os.access(f"/chiron/end/{task}", os.F_OK)
        result.ended = time.monotonic()
        if job.traced:
            result.delayed = run_queue.waited_s() - kept_waiting
    return value


def _failure(error: BaseException, function: str) -> TaskError:
    if isinstance(error, TaskError):
        return error
    log.report(function, error)
    if isinstance(error, SystemExit):
        plain = isinstance(error.code, int | str | None)
        code = repr(error.code) if plain else type(error.code).__name__
        return TaskError("exited", f"the handler called sys.exit({code[:_SHOWN]}): return instead")
    # Notes come after the line that names the error; a syntax error's source, indented, before it.
    lines = traceback.format_exception_only(error)
    named = next(line for line in lines if not line.startswith(" "))
    return TaskError("raised", named.splitlines()[0][:_SHOWN])

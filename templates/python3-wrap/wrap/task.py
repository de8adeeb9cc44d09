"""Runs one task: its handler, timed, with whatever goes wrong turned into an error."""

from __future__ import annotations

import os
import time
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from resource import RUSAGE_CHILDREN, getrusage
from typing import Any

from chiron_io import taken_by

from wrap import cpu_speed, log, styles
from wrap.declaration import Wrap
from wrap.errors import TaskError
from wrap.exits import Ended
from wrap.loader import Function
from wrap.messages import Ident, Result, Watch
from wrap.objects import Object
from wrap.outputs import Emitted, Outputs
from wrap.probe import Probe
from wrap.redaction import redacted
from wrap.serving import OneProcess
from wrap.threads import Cancelled

#: Characters of an error that the answer has; the log has all.
_SHOWN = 1000


def run(
    task: int,
    given: Callable[[], Object],
    ident: Ident,
    process: int,
    emitted: Emitted,
    wrap: Wrap,
    functions: dict[str, Function],
) -> Result:
    """Run task number `task` in this thread, in process number `process`, on what `given` returns.

    What it emits is `emitted` before it ends. Never raises but for `Cancelled`: that the task was
    given up is no answer to anybody.
    """
    function = functions[wrap.function_of(task)]
    log.mark(ident.mark)
    begun = time.monotonic()
    result = Result(ident.number, task, function.name, wrap.name, process, begun, 0.0)
    outputs = None
    if awaited := wrap.outputs_of.get(task):
        outputs = Outputs(awaited, result, emitted)
    try:
        with taken_by(outputs.emit) if outputs else nullcontext():
            result.output = _call(function, given(), ident.watch, result)
        if outputs:
            outputs.check()
    except Cancelled:
        raise
    except BaseException as error:
        failure = _failure(error, function.name)
        result.error = failure.located(function.name, wrap.name).as_dict()
        if outputs:
            outputs.fail(result.error)
    finally:
        log.end_lines()
    if not result.ended:
        result.ended = time.monotonic()
    return result


def _call(function: Function, given: Object, watch: Watch, result: Result) -> Object:
    arguments = styles.arguments(function, given)
    with OneProcess(), styles.surroundings(function, given):
        if watch.traced:
            value = _watched(function, arguments, watch, result)
        else:
            value = _timed(function, arguments, result)
        return styles.output(function.style, value)


def _watched(function: Function, arguments: tuple[Any, ...], watch: Watch, result: Result) -> Any:
    """What the handler answers; `result` also has what else `watch` wants to know of it.

    Nothing but the handler runs under the probe, which would see it let go of the GIL.
    """
    before = cpu_speed.cpu_probe_s() if watch.cpu_probed else None
    kept_waiting, computed = cpu_speed.waited_s(), _cpu_s()
    try:
        if not watch.probed:
            with _marked(result.task):
                return _timed(function, arguments, result)
        with Probe() as probe:
            value = _timed(function, arguments, result)
        result.ticks = probe.ticks
        return value
    finally:
        result.delayed = cpu_speed.waited_s() - kept_waiting
        result.cpu = _cpu_s() - computed
        result.processes_mib = getrusage(RUSAGE_CHILDREN).ru_maxrss / 1024
        if before is not None:
            result.cpu_probe = (before, cpu_speed.cpu_probe_s())


def _cpu_s() -> float:
    """CPU time of this process, and of those that it started and that have ended."""
    children = getrusage(RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


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
    message = redacted(named.splitlines()[0])[:_SHOWN]
    return TaskError("raised", f"{message}{_place(error, function)}")


def _place(error: BaseException, function: str) -> str:
    """The last line of the function's own files that the error passed through."""
    own = f"{os.sep}functions{os.sep}{function}{os.sep}"
    place = ""
    for frame, line in traceback.walk_tb(error.__traceback__):
        _, ours, file = frame.f_code.co_filename.rpartition(own)
        if ours:
            place = f" ({file}:{line})"
    return place

"""Runs one task: calls its handler, measures it, and turns every failure into a TaskError."""

from __future__ import annotations

import re
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from contextvars import Context
from functools import partial, wraps
from itertools import chain
from pathlib import Path
from resource import RUSAGE_CHILDREN, getrusage
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

from chiron_io import attached_to

from wrap.config.redaction import redacted
from wrap.core.errors import TaskError
from wrap.core.statemachine.errors import cause_of, frames_of
from wrap.core.streams import StreamId
from wrap.core.wrap_spec import Seen, Wrap
from wrap.event_loop.threads import Cancelled
from wrap.functions import styles
from wrap.functions.exit_guard import Ended
from wrap.functions.function_runner import SHOWN, FunctionRunner, raised
from wrap.functions.public import PACKAGE
from wrap.functions.task_io import Access, Begins, Emitted, TaskIO
from wrap.http.server.program import OneProcess
from wrap.net.messages import Ident, Result, Watch
from wrap.observe import cpu_speed, log
from wrap.observe.gil_probe import Probe
from wrap.pipes import piecewise
from wrap.pipes.broker import CLIENT
from wrap.pipes.writer import Flusher
from wrap.values.value import Object

if TYPE_CHECKING:
    from werkzeug.wrappers import Response

_P = ParamSpec("_P")
_T = TypeVar("_T")
#: A line about a process's memory (proc(5)).
_KIB = re.compile(r"^(\w+):\s+(\d+) kB$", re.MULTILINE)
#: ``function``: the function that this thread ran last.
_thread = threading.local()


def _in_new_context(call: Callable[_P, _T]) -> Callable[_P, _T]:
    """Wrap `call` to run with context variables, such as `decimal`'s precision, at their defaults.

    A new thread starts so, but these threads are reused.
    """

    @wraps(call)
    def called(*arguments: _P.args, **named: _P.kwargs) -> _T:
        return Context().run(call, *arguments, **named)

    return called


def _forget_loop(function: str) -> None:
    """Drop this thread's event loop if another function set it: it may be closed."""
    if getattr(_thread, "function", None) == function:
        return
    _thread.function = function
    policy = getattr(sys.modules.get("asyncio.events"), "_event_loop_policy", None)
    if local := getattr(policy, "_local", None):
        vars(local).clear()


@_in_new_context
def run(
    task: int,
    given: Callable[[], Object],
    ident: Ident,
    process: int,
    emitted: Emitted,
    access: Access,
    begins: Begins | None,
    wrap: Wrap,
    functions: dict[str, FunctionRunner],
) -> Result:
    """Run task number `task` in this thread, in process number `process`.

    `given` returns the input, `emitted` receives early outputs, and `access` opens streams.
    `begins` is called right before the handler: the code before may release the GIL, and the next
    task could then begin first. Raises nothing but `Cancelled`: a cancelled task has no result.
    """
    function = functions[wrap.function_of(task)]
    if function.unsettled:
        if begins is not None:
            begins()  # an import can take long
        function.settle()
    function.restore()
    _forget_loop(function.name)
    log.mark(ident.mark)
    begun = time.monotonic()
    result = Result(ident.number, task, function.name, wrap.name, process, begun, 0.0)
    task_io = None
    watched = ident.watch.traced
    if _has_io(wrap, task) or function.uses_io:
        task_io = TaskIO(wrap, result, emitted, access, watched)
    try:
        with attached_to(task_io) if task_io else nullcontext():
            seen, client = _seen(wrap, task), None
            if seen is Seen.BY_CLIENT and access.client is not None and not watched:
                client = partial(access.client, StreamId(ident.number, task, CLIENT))
            output = _call(function, given(), ident, result, task_io, seen, client, begins)
        if task_io:
            output = task_io.ended(output)
            result.ended = time.monotonic()
        result.output = output
    except Cancelled:
        raise
    except BaseException as error:
        if begins is not None:
            begins()  # if the task failed before its handler
        broken = task_io.broken if task_io else None
        failure = broken or _failure(error, function.name)
        result.error = failure.located(function.name, wrap.name).as_dict(redacted)
        if task_io:
            task_io.fail(result.error)
    finally:
        if task_io:
            task_io.close()
        log.end_lines()
    if not result.ended:
        result.ended = time.monotonic()
    return result


def _call(
    function: FunctionRunner,
    given: Object,
    ident: Ident,
    result: Result,
    task_io: TaskIO | None,
    seen: Seen,
    client: Callable[[], socket.socket] | None,
    begins: Begins | None,
) -> Object:
    trace = ident.trace.headers(ident.number, result.task) if ident.trace is not None else {}
    arguments = function.arguments(given, task_io, trace)
    with OneProcess(), function.surroundings(given, trace):
        if ident.watch.traced:
            value = _watched(function, arguments, ident.watch, result, task_io, begins)
        else:
            value = _timed(function, arguments, result, task_io, begins, client)
        if task_io is not None and task_io.has_written:
            return Object("")
        return value if isinstance(value, Object) else function.answer(value, seen)


def _watched(
    function: FunctionRunner,
    arguments: tuple[Any, ...],
    watch: Watch,
    result: Result,
    task_io: TaskIO | None,
    begins: Begins | None,
) -> Any:
    """Call the handler and return its answer; store the measurements of `watch` in `result`.

    A handler that fails is measured too. Only the handler runs under the probe, which would record
    any other code that releases the GIL.
    """
    before = cpu_speed.cpu_probe_s() if watch.cpu_probed else None
    probe = Probe() if watch.probed and function.in_python else None
    kept_waiting, computed = cpu_speed.waited_s(), _cpu_s(function)
    try:
        if watch.observed:
            with function.observed():
                return _timed(function, arguments, result, task_io, begins)
        if not watch.probed:
            with function.marked(result.task):
                return _timed(function, arguments, result, task_io, begins)
        with probe or nullcontext():
            return _timed(function, arguments, result, task_io, begins)
    finally:
        result.delayed = cpu_speed.waited_s() - kept_waiting
        result.cpu = _cpu_s(function) - computed
        ended_mib = getrusage(RUSAGE_CHILDREN).ru_maxrss / 1024
        result.processes_mib = max(ended_mib, function.memory_mib())
        result.runtime_mib = function.bare_mib() or None
        if before is not None:
            result.cpu_probe = (before, cpu_speed.cpu_probe_s())
        if watch.weighed:
            result.own_mib = _own_mib()
        if watch.observed:
            result.changes = function.changes
        if probe is not None:
            result.ticks = probe.ticks


def _cpu_s(function: FunctionRunner) -> float:
    """Return the CPU seconds of this process, its ended children, and the function's runtime."""
    children = getrusage(RUSAGE_CHILDREN)
    ended_s = children.ru_utime + children.ru_stime
    return time.process_time() + ended_s + function.computed_s()


def _own_mib() -> float | None:
    """Return the peak of this process's private memory in MiB, or None if it is unknown.

    It is the private memory now plus the memory freed since the peak, which was private.
    """
    try:
        kib = {
            name: int(number)
            for file in ("status", "smaps_rollup")
            for name, number in _KIB.findall(Path(f"/proc/self/{file}").read_text())
        }
        return (kib["Private_Dirty"] + kib["VmHWM"] - kib["VmRSS"]) / 1024
    except (OSError, KeyError):  # some kernels lack a field
        return None


def _timed(
    function: FunctionRunner,
    arguments: tuple[Any, ...],
    result: Result,
    task_io: TaskIO | None,
    begins: Begins | None,
    client: Callable[[], socket.socket] | None = None,
) -> Any:
    """Call the handler and return its answer; store begin and end in `result`."""
    if begins is not None:
        begins()
    result.started = time.monotonic()
    try:
        try:
            value = function.call(*arguments)
        except styles.loaded("werkzeug.exceptions", "HTTPException") as error:
            # Flask's abort() is an answer.
            value = error.with_traceback(None)  # its frames refer to this value
        if type(value) is str:  # most answers; the checks below take a microsecond
            return value
        if client is not None and styles.may_be_streamed(function.style, value):
            return _answered(styles.response_of(function.style, value), result, client)
        if isinstance(value, Iterator):
            return _written(value, result, task_io)
        return styles.complete(value)
    finally:
        result.ended = time.monotonic()


def _written(chunks: Iterator[Any], result: Result, task_io: TaskIO | None) -> bytes | Object:
    """Write the pieces of an answer as they are yielded; join them if nobody reads early."""
    encoded = _encoded(chunks, result)
    if task_io is None:
        return b"".join(encoded)
    with task_io.open_output() as file, Flusher(file) as flusher:
        for chunk in encoded:
            file.write(chunk)
            flusher.wrote()
    return Object("")


def _answered(response: Response, result: Result, client: Callable[[], socket.socket]) -> Object:
    """Send an answer to the client piece by piece, from its first piece on.

    An answer of known length is returned whole.
    """
    if not styles.is_streamed(response):
        return styles.whole(response, Seen.BY_CLIENT)
    with closing(response):
        pieces = _encoded(response.iter_encoded(), result)
        first = next(pieces, b"")
        piecewise.send(styles.begin_of(response), chain([first], pieces), client())
    return Object("")


def _encoded(chunks: Iterator[Any], result: Result) -> Iterator[Any]:
    for each in styles.pieces_of(chunks):
        if result.writes is None:
            result.writes = time.monotonic()
        yield each


def _failure(error: BaseException, function: str) -> TaskError:
    if isinstance(error, TaskError):
        return error
    log.report(function, error)
    if isinstance(error, SystemExit):
        plain = isinstance(error.code, int | str | None)
        code = repr(error.code) if plain else type(error.code).__name__
        call = error.call if isinstance(error, Ended) else "sys.exit"
        shown = redacted(code)
        message = f"the handler called {call}({shown[:SHOWN]}): return instead"
        return TaskError(
            "exited", message, caught=("exited", cause_of("exited", f"{call}({shown})"))
        )
    frames = frames_of(error, partial(_own_file, function))
    return raised(type(error).__name__, _said(error), frames)


def _said(error: BaseException) -> str:
    try:
        return str(error)
    except Cancelled:
        raise
    except BaseException as fault:
        return f"str() of it raised {type(fault).__name__}"


def _own_file(function: str, file: str) -> str | None:
    """Return the path of `file` below the function's folder; None for a file elsewhere."""
    _, ours, path = file.rpartition(f"/functions/{function}/{PACKAGE}/")
    return path if ours else None


def _has_io(wrap: Wrap, task: int) -> bool:
    """Whether a task emits outputs before its end, or reads or writes streams."""
    return task in wrap.outputs_of or task in wrap.streams or task in wrap.live


def _seen(wrap: Wrap, task: int) -> Seen:
    """Return who receives status and headers of the task's answer."""
    if wrap.instances:
        return Seen.PERHAPS
    return Seen.BY_CLIENT if task == wrap.answers else Seen.BY_NOBODY

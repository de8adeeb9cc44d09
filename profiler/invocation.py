"""One solo invocation of a function, timed by its wrap."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple, TypedDict, Unpack

from requests import Response

from chiron.deployment.function_error import ErrorAnswer, FunctionFailedError, parse_error_answer
from chiron.deployment.local_launcher import Ports
from chiron.openfaas.client import Gateway
from chiron.openfaas.endings import TAIL, last_words, memory_note, secret_mend
from chiron.profiler.cpu_speed import CpuSpeed, speed_of
from chiron.profiler.probe_run import ProbeRun, probe_run, read_ticks
from chiron.workflow.data import outputs_in
from chiron.workflow.errors import ChironError
from chiron.workflow.model import ANSWER
from chiron.workflow.timeline import Span, Timeline, Traced
from chiron.workflow.tracing import trace_header

_SHOWN = 300
#: The most runs of a function that fails some of its calls, and the errors that are retried.
_TRIES, _RAISED = 20, frozenset({"raised", "exited", "status"})
#: The header with a wrap's timeout in seconds.
_TIMEOUT = "X-Chiron-Timeout"
#: The error code of a run that did not end in time.
_LATE = "timeout"
#: The exceptions of reading an answer without a timeline of one task.
_NOT_SEEN = (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError)
_NO_SPEED = CpuSpeed(0.0, 0.0)
_NO_ANSWER = ErrorAnswer()


class Changes(NamedTuple):
    """Names of the process-wide state that a function changes.

    A wrap undoes changes `at_import`; changes at import that it cannot undo are `everywhere`.
    """

    in_runs: tuple[str, ...] = ()
    at_import: tuple[str, ...] = ()
    everywhere: tuple[str, ...] = ()


UNCHANGED = Changes()


class Emitted(NamedTuple):
    """An output emitted after the fraction `after` of the latency.

    The function had begun to write it after the fraction `writes_from`.
    """

    text: str
    after: float
    writes_from: float


@dataclass(frozen=True)
class Invocation:
    """One run of a function."""

    output: str
    #: The time of its handler, less the time in which other programs had its thread's core. The
    #: latter depends on the machine, not on the function.
    latency_ms: float
    #: The content type of its output; empty if it set none.
    content_type: str = ""
    #: The time in which its thread had no core, in milliseconds.
    delayed_ms: float = 0.0
    #: The mean number of busy cores: CPU time of its process, and of processes that it started and
    #: that ended, over the latency.
    cores: float = 0.0
    #: The peak memory of any process that it started and that has ended so far. It is at least the
    #: wrap's own memory at that start, as the kernel counts from before the exec.
    processes_mib: float = 0.0
    #: The part of that which another runtime's process uses without any function; 0 without one.
    runtime_mib: float = 0.0
    #: The peak private memory of its process, if requested and reported by the kernel.
    own_mib: float | None = None
    #: The observations of the GIL probe, if requested.
    probed: ProbeRun | None = None
    #: The core's speed, from the CPU-speed probe in the same thread right before and after; zeros
    #: if not requested.
    speed: CpuSpeed = _NO_SPEED
    #: The outputs emitted before its end, by name.
    emitted: Mapping[str, Emitted] = field(default_factory=dict)
    #: The fraction of its latency after which it began to write its answer; None if it returned
    #: the answer at its end.
    writes_from: float | None = None
    #: The begin and end of reading its streams, as fractions of its latency; None if it read none.
    reads: tuple[float, float] | None = None
    #: The changes to process-wide state so far, if observed.
    changes: Changes = UNCHANGED
    #: The number of runs up to this run, including failed runs.
    tries: int = 1


class RunFailedError(FunctionFailedError):
    """A run of a function failed; ``run`` has its observations if its wrap reported them.

    A run that did not end in time has none.
    """

    run: Invocation | None = None


class How(TypedDict, total=False):
    """The keyword parameters of `Solo.invoke_once`."""

    probed: bool
    cpu_probed: bool
    observed: bool
    weighed: bool
    limit_s: float | None


@dataclass(frozen=True)
class Solo:
    """A function alone in the wrap `wrap`, with the inputs that it gets in its workflow.

    A failed run is repeated, up to `tries` runs, as a function may fail some of its calls. If a
    function `fails` all its calls, a failed run is a result.
    """

    gateway: Gateway | Ports
    trace_key: str
    wrap: str
    function: str
    requests: Sequence[bytes]
    tries: int = 1
    fails: bool = False

    def with_input(self, request: bytes, *, fails: bool) -> Solo:
        """Return the function with that input alone; failed runs are repeated unless it `fails`."""
        return replace(self, requests=[request], tries=1 if fails else _TRIES, fails=fails)

    def warm_up(self, seconds: float) -> None:
        """Run the function repeatedly for `seconds`."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.invoke()

    def invoke(self, number: int = 0, **how: Unpack[How]) -> Invocation:
        """Run the function with `invoke_once` until a run answers."""
        for tries in range(1, self.tries):
            try:
                return replace(self.invoke_once(number, **how), tries=tries)
            except FunctionFailedError as error:
                if error.answer.code not in _RAISED:
                    raise
        try:
            return replace(self.invoke_once(number, **how), tries=self.tries)
        except RunFailedError as error:
            if not self.fails or error.run is None:
                if self.tries > 1:
                    error.add(f"it failed in each of {self.tries} runs")
                raise
            return error.run

    def invoke_once(
        self,
        number: int = 0,
        *,
        probed: bool = False,
        cpu_probed: bool = False,
        observed: bool = False,
        weighed: bool = False,
        limit_s: float | None = None,
    ) -> Invocation:
        """Run the function once, on its input `number`, modulo the number of inputs.

        Args:
            probed: whether to run the GIL probe beside it.
            cpu_probed: whether to run the CPU-speed probe before and after it.
            observed: whether the wrap looks for changes to process-wide state.
            weighed: whether the wrap measures the memory that its process shares with no other.
            limit_s: its time limit in seconds; None is the limit of any request.

        Raises ``function-failed`` or the gateway's errors, always with the function's name.
        """
        asked = {"probe": probed, "cpu-speed": cpu_probed, "state": observed, "memory": weighed}
        beside = next((name for name in asked if asked[name]), "")
        response = self._traced(number, beside, limit_s)
        if not response.ok:
            answer = parse_error_answer(response.content, response.status_code)
            message = " ".join(answer.message.split())[:_SHOWN]
            error = self._failed(f"failed while it was profiled: {message}", answer)
            with suppress(*_NOT_SEEN):
                if answer.code != _LATE:
                    timeline = json.dumps(json.loads(response.content)["timeline"])
                    error.run = _timed(Timeline.model_validate_json(timeline), cpu_probed)
            raise error
        try:
            return _seen(Traced.model_validate_json(response.content), cpu_probed=cpu_probed)
        except _NOT_SEEN:
            raise self._failed("answered without a timeline: is it a wrap of chiron?") from None

    def _traced(self, number: int, beside: str, limit_s: float | None) -> Response:
        """Return the answer to a traced request; `beside` names the probe to use."""
        headers = trace_header(self.trace_key, beside)
        if limit_s is not None:
            headers = {**headers, _TIMEOUT: f"{limit_s:.3f}"}
        request = self.requests[number % len(self.requests)]
        try:
            return self.gateway.invoke(self.wrap, request, headers=headers)
        except ChironError as error:
            message = f"function {self.function} could not be profiled: {error.message}"
            raise ChironError(
                error.code, message, functions=[self.function], status=error.status
            ) from None

    def _failed(self, how: str, answer: ErrorAnswer = _NO_ANSWER) -> RunFailedError:
        message = f"function {self.function} {how}"
        error = RunFailedError("function-failed", message, functions=[self.function])
        error.answer = answer
        if mend := secret_mend(how):
            error.add(mend)
        # An exception of a handler is reported with its line: its log would repeat that.
        log_shown = answer.code != "raised"
        with suppress(ChironError):  # `error` is more helpful than a failure to read the log
            log = self.gateway.logs(self.wrap, TAIL)
            note = memory_note(error, self.wrap, [self.function], log)
            said = "" if len(answer.message) > _SHOWN else answer.message
            unsaid = [line for line in log if not said or said not in line.text]
            words = last_words(unsaid) if note or log_shown else None
            for more in filter(None, (note, words)):
                error.add(more)
        return error


def _seen(answer: Traced, *, cpu_probed: bool) -> Invocation:
    """Return the invocation in a traced answer.

    Raises ``ValueError``, ``KeyError`` and the like if the timeline is not a wrap's.
    """
    emits = {span.output or "": span for span in answer.timeline.of_kind("emit")}
    texts = outputs_in(answer.output, ANSWER, {name: name for name in emits})
    (run,) = answer.timeline.tasks
    return replace(
        _timed(answer.timeline, cpu_probed),
        output=texts[ANSWER],
        content_type=answer.content_type,
        emitted={
            name: Emitted(texts[name], _after(span.end_ms, run), _after(span.start_ms, run))
            for name, span in emits.items()
        },
    )


def _timed(timeline: Timeline, cpu_probed: bool) -> Invocation:
    """Return the invocation in the timeline of its one task, without its outputs."""
    (run,) = timeline.tasks
    latency_ms = max(0.0, run.duration_ms - run.wait_core_ms)
    return Invocation(
        output="",
        latency_ms=latency_ms,
        delayed_ms=run.wait_core_ms,
        cores=(run.cpu_ms or 0.0) / latency_ms if latency_ms else 0.0,
        processes_mib=run.processes_mib or 0.0,
        runtime_mib=run.runtime_mib or 0.0,
        own_mib=run.own_mib,
        probed=None if run.ticks is None else probe_run(read_ticks(run.ticks)),
        speed=speed_of(run.cpu_probe_ms or ()) if cpu_probed else _NO_SPEED,
        writes_from=None if run.writes_ms is None else _after(run.writes_ms, run),
        reads=None
        if run.reads_ms is None
        else (_after(run.reads_ms[0], run), _after(run.reads_ms[1], run)),
        changes=Changes(*run.changes or ()),
    )


def _after(at_ms: float, run: Span) -> float:
    """Return the fraction of the run that has passed at `at_ms`."""
    passed_ms = at_ms - run.start_ms
    return min(1.0, max(0.0, passed_ms / run.duration_ms)) if run.duration_ms else 1.0

"""One solo invocation of a function, timed by the wrap that runs it."""

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
from chiron.openfaas.endings import TAIL, last_words, memory_note
from chiron.profiler.cpu_speed import CpuSpeed, speed_of
from chiron.profiler.probe_run import ProbeRun, probe_run, read_ticks
from chiron.workflow.data import outputs_in
from chiron.workflow.errors import ChironError
from chiron.workflow.model import ANSWER
from chiron.workflow.timeline import Span, Timeline, Traced
from chiron.workflow.tracing import trace_header

_SHOWN = 300
#: How often a function is run that raises at some of its calls, and the errors of these runs.
_TRIES, _RAISED = 20, frozenset({"raised", "exited", "status"})
#: In how many seconds a wrap has to answer.
_TIMEOUT = "X-Chiron-Timeout"
#: The error of a run that did not end in time.
_LATE = "timeout"
#: What an answer without a timeline of one task raises.
_NOT_SEEN = (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError)
_NO_SPEED = CpuSpeed(0.0, 0.0)
_NO_ANSWER = ErrorAnswer()


class Changes(NamedTuple):
    """Names of what a function changes of the state that its process shares.

    What its import changes is taken back in a wrap where that is possible, or is `everywhere`.
    """

    in_runs: tuple[str, ...] = ()
    at_import: tuple[str, ...] = ()
    everywhere: tuple[str, ...] = ()


UNCHANGED = Changes()


class Emitted(NamedTuple):
    """An output that a function emitted when the part `after` of its latency had passed.

    It had begun to write it when the part `writes_from` had.
    """

    text: str
    after: float
    writes_from: float


@dataclass(frozen=True)
class Invocation:
    """One run of a function."""

    output: str
    #: How long its handler took, without the time in which its thread had no core since other
    #: programs had them: that is the machine's, and no other run's.
    latency_ms: float
    #: What it called its output; empty if it did not.
    content_type: str = ""
    #: How long its thread had no core, in milliseconds.
    delayed_ms: float = 0.0
    #: How many cores it kept busy on average while it had not to wait for one: CPU time of its
    #: process, and of processes that it started and that ended, over the latency.
    cores: float = 0.0
    #: The most memory that a process which it started and that ended has had so far: never less
    #: than the wrap's own had when it started one, as the kernel counts from before its exec.
    processes_mib: float = 0.0
    #: What of that the process of another runtime takes without any function; 0 without such.
    runtime_mib: float = 0.0
    #: The most memory that its process had and shared with no other, if it was asked for and the
    #: kernel told it.
    own_mib: float | None = None
    #: What the probe saw, if it was asked for.
    probed: ProbeRun | None = None
    #: By what the CPU-speed probe took in the same thread right before and after; zeros where it
    #: was not asked for.
    speed: CpuSpeed = _NO_SPEED
    #: What it emitted before its end, by name.
    emitted: Mapping[str, Emitted] = field(default_factory=dict)
    #: After which part of its latency it began to write its answer; None where it gave that at its
    #: end.
    writes_from: float | None = None
    #: From when to when it read its streams, as parts of its latency; None where it did not.
    reads: tuple[float, float] | None = None
    #: What the function has changed so far of what its process shares, if it was observed.
    changes: Changes = UNCHANGED
    #: The number of runs until this one, the failed runs before it included.
    tries: int = 1


class RunFailedError(FunctionFailedError):
    """A run of a function failed; ``run`` is what was seen of it until then, if its wrap told it.

    Of a run that did not end in time nothing counts.
    """

    run: Invocation | None = None


class How(TypedDict, total=False):
    """The parameters of `Solo.invoke_once` by name."""

    probed: bool
    cpu_probed: bool
    observed: bool
    weighed: bool
    limit_s: float | None


@dataclass(frozen=True)
class Solo:
    """A function alone in the wrap `wrap`, with the inputs that it gets in its workflow.

    A run that raises is repeated, up to `tries` runs: a function may fail at some of its calls. Of
    a function that `fails` at all of them, a run that fails is a run.
    """

    gateway: Gateway | Ports
    trace_key: str
    wrap: str
    function: str
    requests: Sequence[bytes]
    tries: int = 1
    fails: bool = False

    def with_input(self, request: bytes, *, fails: bool) -> Solo:
        """The same with that input alone; a run that fails is repeated, unless all do."""
        return replace(self, requests=[request], tries=1 if fails else _TRIES, fails=fails)

    def warm_up(self, seconds: float) -> None:
        """Run it again and again, for so long."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            self.invoke()

    def invoke(self, number: int = 0, **how: Unpack[How]) -> Invocation:
        """Run it, as `invoke_once` does, until a run answers."""
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
        """Run it once, on its input `number` of those that it has in turn.

        Args:
            probed: whether beside the probe of the GIL.
            cpu_probed: whether between two runs of the CPU-speed probe.
            observed: whether the wrap looks for what it changes of what its process shares.
            weighed: whether the wrap measures the memory that its process shares with no other.
            limit_s: for how long it may run, in seconds, if not as long as any request.

        Raises ``function-failed`` or what the gateway raises, always with the function's name.
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
        """The answer to a traced request, looked at `beside` its run."""
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
        # What a handler raised is told with its line: its log would say it again.
        log_shown = answer.code != "raised"
        with suppress(ChironError):  # of the two errors this one tells what is wrong
            log = self.gateway.logs(self.wrap, TAIL)
            note = memory_note(error, self.wrap, [self.function], log)
            words = last_words(log) if note or log_shown else None
            for more in filter(None, (note, words)):
                error.add(more)
        return error


def _seen(answer: Traced, *, cpu_probed: bool) -> Invocation:
    """What a traced answer tells of a run.

    Raises ``ValueError``, ``KeyError`` and the like where the timeline is none of a wrap.
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
    """What the timeline of its one task tells of a run, but for what it gave."""
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
    """What part of a run has passed then."""
    passed_ms = at_ms - run.start_ms
    return min(1.0, max(0.0, passed_ms / run.duration_ms)) if run.duration_ms else 1.0

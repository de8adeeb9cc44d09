"""Solo runs of functions: untraced, traced and probed runs alternate, to see the same machine.

The speed of a machine, or of a disk, drifts by more than tracing costs. So every few untraced runs
are followed by traced and probed runs. The CPU-speed probe runs right before and after each
untraced run.

Functions take turns too, and pause before each run, as in a deployment. A function run again at
once finds warm caches and kernel memory. In consecutive runs, writing a file took 10.4 ms instead
of 13.4 ms, and functions of half a millisecond were a fifth faster.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from math import inf, sqrt
from statistics import median, median_low, quantiles
from typing import NamedTuple, TypeVar

from chiron.deployment.deploy import Progress
from chiron.predictor.speed import run_at
from chiron.predictor.spread import evenly
from chiron.profiler.cpu_speed import CpuSpeed, steady
from chiron.profiler.handler_run import HandlerRun
from chiron.profiler.invocation import UNCHANGED, Changes, Emitted, Invocation, Solo
from chiron.profiler.probe_run import ProbeRun
from chiron.profiler.progress import SlowRuns
from chiron.profiler.sandbox import Sandbox
from chiron.profiler.tracer import Tracer
from chiron.workflow.data import bytes_of
from chiron.workflow.errors import ChironError
from chiron.workflow.profile import Emission
from chiron.wrap.core.buckets.routes import ALL

#: Called with the function that was run, and with the run.
Beside = Callable[[Solo, Invocation], None]

Value = TypeVar("Value")

#: The pause between two steps of one function, in seconds.
_REST_S = 0.02
_WARM_UP = 3
#: The time limit of a function's untraced runs, in milliseconds; the fewest runs may exceed it.
_BUDGET_MS = 8_000.0
FEWEST_ROUNDS = 6
#: Untraced runs per turn, and traced (and as many probed) runs per turn. Attaching strace takes
#: longer than most runs, and traced runs show only the composition of the latency.
_UNTRACED_IN_TURN, _LOOKED_AT_IN_TURN = 4, 2
#: The relative error of the latency above which there are more untraced runs, and their maximum in
#: multiples of the rounds.
_UNCERTAIN = 0.01
_MOST_TIMES = 5
#: The memory that any process loads in its first run: 1 to 3 MiB measured.
_FIRST_RUN_MIB = 4.0
#: The most memory freed by requests that a wrap keeps (templates: wrap/values/malloc.py).
_KEPT_MIB = 32.0
#: The number of quantiles of the variation, and the fewest runs for them.
_QUANTILES, _FEWEST_VARIED = 20, 6


class Untraced(NamedTuple):
    """A run without strace and probe: its latency, its core's speed, and its mean of busy cores."""

    latency_ms: float
    speed: CpuSpeed
    cores: float = 0.0


@dataclass(frozen=True)
class Samples:
    """The observations of one function."""

    #: The runs without strace and probe.
    untraced: tuple[Untraced, ...]
    #: The runs under strace, empty without strace; and the runs with the probe, less the time in
    #: which they had no core.
    traced: tuple[HandlerRun, ...]
    probed: tuple[ProbeRun, ...]
    #: The peak of resident memory over the idle process, including the largest process that the
    #: function starts; and the idle process itself, without the memory that it keeps.
    memory_mib: float
    idle_mib: float
    #: The median size of its requests and answers.
    input_bytes: int
    output_bytes: int
    #: The outputs emitted before its end.
    emits: Mapping[str, Emission] = field(default_factory=dict)
    #: Whether its answers to the same request differ.
    varies: bool = False
    #: The medians of the fields of `chiron.profiler.invocation.Invocation`.
    writes_from: float | None = None
    reads: tuple[float, float] | None = None
    #: Its changes to process-wide state.
    changes: Changes = UNCHANGED
    #: The part of the peak that another runtime's process uses without any function.
    runtime_mib: float = 0.0

    @property
    def cpu_probe_ms(self) -> float:
        """The median time of the CPU-speed probe, over the runs with the steadiest core speed."""
        return median(run.speed.probe_ms for run in _steady(self.untraced))

    @property
    def cores(self) -> float:
        """The median number of cores that the function keeps busy."""
        return median(run.cores for run in self.untraced)

    def latency_ms(self, waiting_ms: float) -> float:
        """Return the median latency of a function that waits for `waiting_ms`.

        It is that of the runs with the steadiest core speed, normalised to one speed: the part of a
        run that is not waiting scales with the time of the probe beside it.
        """
        return median(self._at_one_speed(waiting_ms))

    def variation(self, waiting_ms: float) -> tuple[float, ...]:
        """Return `FunctionProfile.variation` of a function that waits for `waiting_ms`.

        It excludes the variation of the machine's speed, which belongs to the platform.
        """
        runs_ms = self._at_one_speed(waiting_ms)
        middle_ms = median(runs_ms)
        if len(runs_ms) < _FEWEST_VARIED or not middle_ms:
            return ()
        return tuple(round(run_ms / middle_ms, 4) for run_ms in evenly(runs_ms, _QUANTILES))

    def _at_one_speed(self, waiting_ms: float) -> list[float]:
        usual_ms = self.cpu_probe_ms
        return [
            run_at(run.latency_ms, waiting_ms, run.speed.probe_ms, usual_ms)
            for run in _steady(self.untraced)
        ]


def in_turn(
    going: Mapping[str, Generator[None, None, Value]],
    keeping: Callable[[str], AbstractContextManager[None]],
) -> dict[str, Value]:
    """Step each generator in turn until all have ended; return their values by name.

    Each generator pauses between its steps, while others run. `keeping` of its name may suppress an
    exception that it raises; then it has ended without a value.
    """
    left, found = dict(going), dict[str, Value]()
    rested = dict.fromkeys(going, 0.0)
    while left:
        for name, steps in list(left.items()):
            del left[name]
            time.sleep(max(0.0, rested[name] - time.monotonic()))
            with keeping(name):
                try:
                    next(steps)
                    left[name] = steps
                except StopIteration as ended:
                    found[name] = ended.value
            rested[name] = time.monotonic() + _REST_S
    return {name: found[name] for name in going if name in found}


def sample(
    solo: Solo,
    sandbox: Sandbox,
    tracer: Tracer | None,
    count: int,
    *,
    fresh_mib: float | None = None,
    further_s: float,
    say: Progress,
    beside: Beside | None = None,
) -> Generator[None, None, Samples]:
    """Run a function for `count` rounds, fewer if it is slow; add untraced runs if it varies.

    The generator yields to other functions before every untraced run.

    Args:
        tracer: runs the function under strace; None if only the probe is used.
        fresh_mib: the function's resident memory before its first run, if known.
        further_s: the time for untraced runs beyond the rounds.
        say: called with a line about the runs of a slow function.
        beside: called after every untraced run.

    Raises ``function-failed`` if the function fails; ``no-trace`` if its runs are not found in the
    output of strace.
    """
    idle_mib = sandbox.resident_mib()
    sandbox.forget_peak()
    slow = SlowRuns(solo.function, say, partial(_planned, count, traced=tracer is not None))
    warm = _warmed(solo, slow)
    memory_mib = max(0.0, sandbox.peak_mib() - idle_mib) + max(run.processes_mib for run in warm)
    kept_mib = _kept_mib(idle_mib, fresh_mib)
    if tracer:
        tracer.runs([0])
    runs = _Runs(solo, beside)
    traced: list[HandlerRun] = []
    probed: list[ProbeRun | None] = []
    latency_ms = median(run.latency_ms for run in warm)
    rounds = _rounds(count, latency_ms)
    for turn in range(-(-rounds // _UNTRACED_IN_TURN)):
        while len(runs.untraced) < min(rounds, (turn + 1) * _UNTRACED_IN_TURN):
            yield
            runs.one_more()
            slow.ran(latency_ms)
        numbers = range(turn * _LOOKED_AT_IN_TURN, (turn + 1) * _LOOKED_AT_IN_TURN)
        if tracer:
            traced += tracer.runs(numbers)
            slow.ran(latency_ms, len(numbers))
        probed += [solo.invoke(number, probed=True).probed for number in numbers]
        slow.ran(latency_ms, len(numbers))
    yield from _until_sure(runs, _MOST_TIMES * rounds, further_s)
    if tracer and not traced:
        raise _no_trace(solo.function)
    return runs.samples(
        traced=tuple(traced),
        probed=tuple(run for run in probed if run),
        memory_mib=memory_mib + kept_mib,
        idle_mib=idle_mib - kept_mib,
        runtime_mib=warm[-1].runtime_mib,
        changes=warm[-1].changes,
    )


def _warmed(solo: Solo, slow: SlowRuns) -> list[Invocation]:
    """Run a function a few times, observed as when it ran the workflow for the inputs."""
    warm = list[Invocation]()
    for number in range(_WARM_UP):
        warm.append(solo.invoke(number, observed=True))
        slow.ran(warm[-1].latency_ms)
    return warm


def _no_trace(function: str) -> ChironError:
    message = f"strace saw no run of function {function}: does its process restart?"
    return ChironError("no-trace", message, functions=[function])


def _until_sure(runs: _Runs, most: int, further_s: float) -> Iterator[None]:
    """Run a varying function further, `most` times in all; yield before each run."""
    while len(runs.untraced) < most and further_s > 0:
        if _uncertainty(runs.untraced) <= _UNCERTAIN:
            break
        yield
        begun = time.monotonic()
        runs.one_more()
        further_s -= time.monotonic() - begun


@dataclass
class _Runs:
    """The untraced runs of a function so far, and their results."""

    solo: Solo
    beside: Beside | None
    untraced: list[Untraced] = field(default_factory=list)
    output_bytes: list[int] = field(default_factory=list)
    answers: dict[int, set[int]] = field(default_factory=dict)  # request -> hashes of its answers
    emitted: dict[str, list[Emitted]] = field(default_factory=dict)
    writes_from: list[float] = field(default_factory=list)
    reads: list[tuple[float, float]] = field(default_factory=list)

    def one_more(self) -> None:
        """Run the function once more, on the next of its requests."""
        run = self.solo.invoke(len(self.untraced), cpu_probed=True)
        self.untraced.append(Untraced(run.latency_ms, run.speed, run.cores))
        self.output_bytes.append(len(bytes_of(run.output)))
        request = len(self.untraced) % len(self.solo.requests)
        self.answers.setdefault(request, set()).add(hash(run.output))
        for name, each in run.emitted.items() if ALL not in run.emitted else ():
            self.emitted.setdefault(name, []).append(each)
        if run.writes_from is not None:
            self.writes_from.append(run.writes_from)
        if run.reads is not None:
            self.reads.append(run.reads)
        if self.beside:
            self.beside(self.solo, run)

    def samples(
        self,
        traced: tuple[HandlerRun, ...],
        probed: tuple[ProbeRun, ...],
        memory_mib: float,
        idle_mib: float,
        runtime_mib: float,
        changes: Changes,
    ) -> Samples:
        """Return all observations: of these runs, and the given ones of other runs."""
        reads = self.reads
        return Samples(
            untraced=tuple(self.untraced),
            traced=traced,
            probed=probed,
            memory_mib=memory_mib,
            idle_mib=idle_mib,
            runtime_mib=runtime_mib,
            input_bytes=median_low(map(len, self.solo.requests)),
            output_bytes=median_low(self.output_bytes),
            emits={name: _typical(each) for name, each in self.emitted.items()},
            varies=any(len(each) > 1 for each in self.answers.values()),
            writes_from=_median(self.writes_from) if self.writes_from else None,
            reads=(_median(r[0] for r in reads), _median(r[1] for r in reads)) if reads else None,
            changes=changes,
        )


def _typical(emitted: Sequence[Emitted]) -> Emission:
    after, begins = _median(e.after for e in emitted), _median(e.writes_from for e in emitted)
    return Emission(
        after=after,
        bytes=median_low(len(bytes_of(each.text)) for each in emitted),
        writes_from=begins if begins < after else None,
    )


def _median(parts: Iterable[float]) -> float:
    return round(median(parts), 4)


def _kept_mib(idle_mib: float, fresh_mib: float | None) -> float:
    """Return the memory of an idle process that its last runs allocated and it keeps for the next.

    It is the growth since the process was fresh, or 0 if the growth is no more than any first run
    loads. Growth above the most that a wrap keeps comes from imports in the first run.
    """
    grown_mib = 0.0 if fresh_mib is None else idle_mib - fresh_mib
    return min(grown_mib, _KEPT_MIB) if grown_mib > _FIRST_RUN_MIB else 0.0


def _steady(runs: Sequence[Untraced]) -> Sequence[Untraced]:
    return steady(runs, lambda run: run.speed.uneven)


def _uncertainty(untraced: Sequence[Untraced]) -> float:
    """Return the relative standard error of the median latency, in milliseconds or in probe times.

    The smaller error counts; the latter divides each latency by its CPU-speed probe.
    """
    runs = _steady(untraced)
    in_probes = [run.latency_ms / run.speed.probe_ms for run in runs]
    return min(_relative_error([run.latency_ms for run in runs]), _relative_error(in_probes))


def _relative_error(latencies_ms: Sequence[float]) -> float:
    """Return the relative standard error of the median of `latencies_ms`, from their quartiles.

    For a normal distribution, the error is 1.2533 s / sqrt(n), and the quartiles are 1.349 s apart.
    """
    if len(latencies_ms) < 2:
        return inf
    low, middle, high = quantiles(latencies_ms, n=4, method="inclusive")
    error = 1.2533 / 1.349 * (high - low) / sqrt(len(latencies_ms))
    return error / middle if middle else 0.0


def _planned(count: int, latency_ms: float, *, traced: bool) -> int:
    """Return the runs of `sample`, without those of a function that varies."""
    rounds = _rounds(count, latency_ms)
    turns = -(-rounds // _UNTRACED_IN_TURN)
    return _WARM_UP + rounds + turns * _LOOKED_AT_IN_TURN * (1 + traced)


def _rounds(count: int, latency_ms: float) -> int:
    affordable = int(_BUDGET_MS / latency_ms) if latency_ms else count
    return max(min(count, FEWEST_ROUNDS), min(count, affordable))

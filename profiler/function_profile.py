"""Create a function's profile from its samples, add forked runs, and average over payloads."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from statistics import fmean, median, quantiles
from typing import TypeVar, get_args

from chiron.deployment.deploy import Progress
from chiron.deployment.function_error import FunctionFailedError
from chiron.openfaas.handlers import Handler, read_requirements
from chiron.predictor.speed import function_at, latency_at, slower
from chiron.profiler.inputs import WorkflowRun
from chiron.profiler.invocation import Changes, Invocation, Solo
from chiron.profiler.periods import Piece, laid_out, periods
from chiron.profiler.probe_run import CORES, LEAST_PARALLELISM, SHORTEST_SEEN_MS, ProbeRun
from chiron.profiler.progress import SlowRuns
from chiron.profiler.reconcile import probed_periods, reconciled
from chiron.profiler.sampling import Samples
from chiron.profiler.shared_resources import (
    files,
    in_container,
    looked_up,
    optional_imports,
    perhaps_unshareable,
    ports,
    unshareable,
)
from chiron.profiler.typical_run import traced_run, typical_run
from chiron.workflow.model import Workflow
from chiron.workflow.profile import FunctionProfile, Period, PeriodKind, in_a_row
from chiron.workflow.trace import task_of
from chiron.wrap.functions.leftovers import GIL_ENABLED, RUN_ON, THREADS_RUN_ON

_FORKED_WARM_UP, _AT_ONCE = 2, 2
#: Runs in forked processes, each of which serves one request.
_FORKED_RUNS = 12
#: The time limit of all of them, in milliseconds; the fewest runs may exceed it.
_FORKED_BUDGET_MS = 2_000.0
_FEWEST_FORKED = 3
#: The limit of the first runs, in seconds, or relative to the latency if that is longer.
_FORKED_LIMIT_S, _FORKED_TIMES = 10.0, 5
#: The end of the names of runtimes without a GIL.
_NO_GIL = "t"
#: What is said of a function with `GIL_ENABLED`.
WITH_GIL = "shares no wrap with functions without a GIL: a module of it enables the GIL again"
Fact = TypeVar("Fact")


def function_profile(samples: Samples, runtime: str, handler: Handler | None) -> FunctionProfile:
    """Return the profile of the function with this `handler`; None is a called function.

    Of a called function, only the waiting of its caller is observed.

    The latency is the median of the untraced runs, at one speed of the machine. The periods are
    those of a typical traced run, with the kinds of a typical run with the probe.
    """
    taken_ms = [run.latency_ms for run in samples.untraced]
    low, middle_ms, high = quantiles(taken_ms, n=4, method="inclusive")
    # The waiting time does not depend on the machine's speed, but is needed to normalise to it.
    usual = _periods(samples, round(middle_ms, 3))
    waiting_ms = sum(period.duration_ms for period in usual if period.kind == "block")
    latency_ms = round(samples.latency_ms(waiting_ms), 3)
    found = _keeping_busy(_periods(samples, latency_ms), samples.cores * latency_ms)
    runtime, parallel = ran_in(runtime, samples.changes, handler)
    if parallel:
        found = tuple(
            each.model_copy(update={"kind": "native"}) if each.kind == "cpu" else each
            for each in found
        )
    opened = files(samples.traced)
    seen = FunctionProfile(
        latency_ms=latency_ms,
        samples=len(samples.untraced),
        spread_ms=(round(min(low, latency_ms), 3), round(max(high, latency_ms), 3)),
        variation=samples.variation(waiting_ms),
        varies=samples.varies,
        cpu_probe_ms=round(samples.cpu_probe_ms, 4),
        sources=(*(("probe",) if samples.probed else ()), *(("strace",) if samples.traced else ())),
        periods=found,
        memory_mib=round(samples.memory_mib, 2),
        runtime_mib=round(samples.runtime_mib, 2),
        idle_mib=round(samples.idle_mib, 2) or None,
        files_read=opened.read,
        files_written=opened.written,
        ports=ports(samples.traced),
        # Changes to a process of its own affect no other function.
        unshareable=(*samples.changes.in_runs, *looked_up(samples.traced))
        if handler and handler.shares_process
        else (),
        set_at_import=samples.changes.at_import,
        patched_at_import=tuple(n for n in samples.changes.everywhere if n != GIL_ENABLED),
        input_bytes=samples.input_bytes,
        output_bytes=samples.output_bytes,
        emits=dict(samples.emits),
        writes_from=samples.writes_from,
        reads_from=samples.reads and samples.reads[0],
        reads_until=samples.reads and samples.reads[1],
        runtime=runtime,
        parallel=parallel,
    )
    return with_code(seen, handler)


def ran_in(runtime: str, changes: Changes, handler: Handler | None) -> tuple[str, bool]:
    """Return the runtime of a function, and whether it computes without a lock.

    `runtime` is its wrap's. If a module of the function enabled the GIL of a CPython without, the
    function belongs in a CPython with a GIL.
    """
    if handler and handler.runtime:
        return handler.runtime, handler.parallel
    if GIL_ENABLED in changes.everywhere:
        runtime = runtime.removesuffix(_NO_GIL)
    return runtime, runtime.endswith(_NO_GIL)


def with_code(seen: FunctionProfile, handler: Handler | None) -> FunctionProfile:
    """Extend `seen` by facts from the function's code, which is not run."""
    if handler is None:
        return seen
    in_code: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    if handler.in_python:
        optional = optional_imports(*handler.places)
        in_code = unshareable(*handler.places)
        if not seen.sources:  # no run has shown its other changes
            in_code += perhaps_unshareable(*handler.places)
    else:
        in_code = in_container(handler.command, *handler.places)
    return seen.model_copy(
        update={
            "unshareable": _each_once([seen.unshareable, in_code]),
            "cooperative": handler.cooperative,
            "parallel": seen.parallel or handler.parallel,
            "runtime": handler.runtime or seen.runtime,
            "requirements": tuple(map(str, read_requirements(handler))),
            "optional_imports": optional,
        }
    )


def lost_in(workflow: Workflow, runs: Sequence[WorkflowRun]) -> dict[str, FunctionProfile]:
    """Return profiles of functions from calls that were late or ended their process."""
    shortest_ms = dict[str, float]()
    for name, ms in (each for run in runs for each in run.lost_ms.items()):
        function = workflow.function_of(task_of(name))
        shortest_ms[function] = min(ms, shortest_ms.get(function, ms))
    return {
        function: FunctionProfile(
            latency_ms=ms, periods=(Period(kind="cpu", start_ms=0.0, duration_ms=ms),)
        )
        for function, ms in shortest_ms.items()
    }


def _periods(samples: Samples, latency_ms: float) -> tuple[Period, ...]:
    if not samples.probed:
        return _without_gil(samples, latency_ms)
    probed = _typical_kinds(samples.probed)
    if not samples.traced:
        return probed_periods(probed, latency_ms)
    run = typical_run(list(map(traced_run, samples.traced)))
    held_ms, busy_ms = 0.0, latency_ms
    if latency_ms >= SHORTEST_SEEN_MS:  # else the probe cannot tell
        held_ms = _time_ms(probed, latency_ms, "cpu")
        busy_ms = held_ms + _time_ms(probed, latency_ms, "native")
    return reconciled(periods(run, latency_ms, held_ms, busy_ms), probed)


def _without_gil(samples: Samples, latency_ms: float) -> tuple[Period, ...]:
    """Return the periods of a function that the GIL probe cannot observe.

    Without a trace, the amount of computing is known but not its time: it is placed first.
    """
    if samples.traced:
        run = typical_run([traced_run(run, gil=False) for run in samples.traced])
        return periods(run, latency_ms, 0.0, latency_ms)
    computing_ms = min(latency_ms, samples.cores * latency_ms)
    pieces = [Piece("cpu", computing_ms), Piece("block", latency_ms - computing_ms)]
    return laid_out(pieces, latency_ms)


def _keeping_busy(periods: Sequence[Period], core_ms: float) -> tuple[Period, ...]:
    """Scale the parallelism of `periods` to `core_ms` of core time, as in the untraced runs.

    If the probe saw several threads compute, it took some of their core time, and saw less. It sees
    false parallelism if the clocks that it compares are of different moments.
    """
    further_ms = core_ms - sum(period.duration_ms for period in periods if period.kind != "block")
    beside_ms = sum(period.duration_ms * (period.parallelism - 1) for period in periods)
    parallel_ms = sum(period.duration_ms for period in periods if period.parallelism > 1)
    more = further_ms / beside_ms if beside_ms else 0.0
    if further_ms < (LEAST_PARALLELISM - 1) * parallel_ms:
        more = 0.0
    return tuple(
        period.model_copy(
            update={"parallelism": round(min(CORES, 1 + (period.parallelism - 1) * more), 2)}
        )
        for period in periods
    )


def _time_ms(probed: ProbeRun, latency_ms: float, kind: PeriodKind) -> float:
    whole = probed.duration_ms
    return probed.time_ms(kind) / whole * latency_ms if whole else 0.0


def _typical_kinds(runs: Sequence[ProbeRun]) -> ProbeRun:
    """Return the run whose times of each kind are nearest to their medians."""
    times = [[run.time_ms(kind) for kind in get_args(PeriodKind)] for run in runs]
    middle = [median(column) for column in zip(*times, strict=True)]
    return min(
        zip(runs, times, strict=True),
        key=lambda pair: sum(abs(one - other) for one, other in zip(pair[1], middle, strict=True)),
    )[0]


def with_forks(
    function: FunctionProfile, solo: Solo, say: Progress
) -> Generator[None, None, FunctionProfile]:
    """Add the latency and the memory in forked processes to `function`.

    `solo` runs the function there; the generator yields between runs. `say` gets a line about the
    runs of a slow function.

    The machine's speed may differ between runs and the profile. So each run is compared with the
    latency that the main process would have at the run's speed.

    A function is unforkable if it leaves programs running or fails there. Two runs at once may fail
    because their imports take the same port or lock. A function whose answers vary elsewhere but
    never there is unforkable too. A run that does not end is abandoned after some seconds.
    """
    for left, what in ((RUN_ON, "programs"), (THREADS_RUN_ON, "daemon threads")):
        if left in function.unshareable:
            reason = f"it leaves {what} running, which end with such a process"
            return function.model_copy(update={"unforkable": reason})
    limit_s = max(_FORKED_LIMIT_S, _FORKED_TIMES * function.latency_ms / 1000)
    affordable = (
        int(_FORKED_BUDGET_MS / function.latency_ms) if function.latency_ms else _FORKED_RUNS
    )
    rounds = range(max(_FEWEST_FORKED, min(_FORKED_RUNS, affordable)))
    planned = _FORKED_WARM_UP + _AT_ONCE + len(rounds)
    slow = SlowRuns(f"{solo.function} in forked processes", say, lambda _: planned)
    answers = set[str]()
    taken_mib = list[float]()
    try:
        for _ in range(_FORKED_WARM_UP):
            run = solo.invoke(limit_s=limit_s, weighed=True)
            answers.add(run.output)
            if run.own_mib is not None:
                taken_mib.append(run.own_mib + run.processes_mib)
            slow.ran(function.latency_ms)
    except FunctionFailedError as error:
        return function.model_copy(update={"unforkable": f"it fails there: {error.message}"})
    try:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            list(threads.map(lambda _: solo.invoke(limit_s=limit_s), range(_AT_ONCE)))
    except FunctionFailedError as error:
        reason = f"it fails in {_AT_ONCE} of them at once: {error.message}"
        return function.model_copy(update={"unforkable": reason})
    slow.ran(function.latency_ms, _AT_ONCE)
    further_ms = list[float]()
    for number in rounds:
        yield
        run = solo.invoke(number, cpu_probed=True)
        answers.add(run.output)
        further_ms.append(_further_ms(function, run))
        slow.ran(function.latency_ms)
    unforkable = ""
    if function.varies and len(answers) == 1:
        unforkable = "its answers vary, but not there: each such process begins with the same state"
    forked_ms = round(max(0.0, function.latency_ms + median(further_ms)), 3)
    forked_mib = round(max(taken_mib), 2) if taken_mib else None
    return function.model_copy(
        update={"forked_ms": forked_ms, "forked_mib": forked_mib, "unforkable": unforkable}
    )


def _further_ms(function: FunctionProfile, run: Invocation) -> float:
    """Return the extra time of `run`, converted to the speed of the profile."""
    further_ms = run.latency_ms - latency_at(function, run.speed.probe_ms)
    return further_ms / slower(function.cpu_probe_ms, run.speed.probe_ms)


def mixed(profiles: Sequence[FunctionProfile], weights: Sequence[float]) -> FunctionProfile:
    """Return the weighted mean of `profiles`.

    It does each kind of work for the mean time, in the order of the slowest profile. Memory, files,
    ports, changes and spread combine all profiles; other facts are those of the slowest.
    """
    if len(profiles) == 1:
        return profiles[0]
    slowest = max(profiles, key=lambda each: each.latency_ms)
    periods = tuple(_mean_periods(slowest, profiles, weights))
    latency_ms = sum(period.duration_ms for period in periods)
    spreads = [each.spread_ms or (each.latency_ms, each.latency_ms) for each in profiles]
    idle = [each.idle_mib or 0.0 for each in profiles]
    forked_mib = [each.forked_mib for each in profiles if each.forked_mib is not None]
    peak_mib = max(known + each.memory_mib for known, each in zip(idle, profiles, strict=True))
    further = [(each.forked_ms or each.latency_ms) - each.latency_ms for each in profiles]
    return slowest.model_copy(
        update={
            "latency_ms": latency_ms,
            "periods": periods,
            "samples": sum(each.samples for each in profiles),
            "spread_ms": (min(low for low, _ in spreads), max(high for _, high in spreads)),
            "forked_ms": latency_ms + fmean(further, weights),
            "varies": any(each.varies for each in profiles),
            "unforkable": next(filter(None, (each.unforkable for each in profiles)), ""),
            "tried": profiles[0].tried,
            "runtime": min(each.runtime for each in profiles),
            "parallel": all(each.parallel for each in profiles),
            "memory_mib": round(peak_mib - min(idle), 2),
            "idle_mib": min(idle) or None,
            "forked_mib": max(forked_mib, default=None),
            "files_read": _each_once(each.files_read for each in profiles),
            "files_written": _each_once(each.files_written for each in profiles),
            "ports": _each_once(each.ports for each in profiles),
            "unshareable": _each_once(each.unshareable for each in profiles),
            "set_at_import": _each_once(each.set_at_import for each in profiles),
            "patched_at_import": _each_once(each.patched_at_import for each in profiles),
        }
    )


def _mean_periods(
    shape: FunctionProfile, profiles: Sequence[FunctionProfile], weights: Sequence[float]
) -> Iterator[Period]:
    """Yield the periods of `shape` with the mean time of each kind; missing kinds come last."""
    kinds: tuple[PeriodKind, ...] = get_args(PeriodKind)
    mean_ms = {kind: fmean([each.time_ms(kind) for each in profiles], weights) for kind in kinds}
    own_ms = {kind: shape.time_ms(kind) for kind in kinds}
    lacking = [Period(kind=k, start_ms=0, duration_ms=mean_ms[k]) for k in kinds if not own_ms[k]]
    periods = [*shape.periods, *(period for period in lacking if period.duration_ms)]
    lengths = [
        round(
            period.duration_ms
            * (mean_ms[period.kind] / (own_ms[period.kind] or period.duration_ms)),
            3,
        )
        for period in periods
    ]
    for period in in_a_row(periods, lengths):
        yield period.model_copy(update={"start_ms": round(period.start_ms, 3)})


def _each_once(facts: Iterable[Iterable[Fact]]) -> tuple[Fact, ...]:
    return tuple(dict.fromkeys(fact for each in facts for fact in each))


def at_one_speed(
    profiles: Mapping[str, Sequence[FunctionProfile]],
) -> dict[str, list[FunctionProfile]]:
    """Convert `profiles` of functions, with each payload, to the median speed of the machine.

    They are measured one after another, and the machine's speed changes in between. A plan runs the
    functions together.
    """
    every = [each.cpu_probe_ms for profiled in profiles.values() for each in profiled]
    known = [cpu_probe_ms for cpu_probe_ms in every if cpu_probe_ms]
    if not known:
        return {name: list(profiled) for name, profiled in profiles.items()}
    typical_ms = median(known)
    return {
        name: [_rounded(function_at(each, typical_ms)) for each in profiled]
        for name, profiled in profiles.items()
    }


def _rounded(function: FunctionProfile) -> FunctionProfile:
    """Round the times of `function` to whole microseconds, as in a profile."""
    latency_ms = round(function.latency_ms, 3)
    pieces = [Piece(p.kind, p.duration_ms, p.syscall, p.parallelism) for p in function.periods]
    times: dict[str, object] = {"latency_ms": latency_ms, "periods": laid_out(pieces, latency_ms)}
    if function.forked_ms is not None:
        times["forked_ms"] = round(function.forked_ms, 3)
    if function.spread_ms is not None:
        times["spread_ms"] = tuple(round(end_ms, 3) for end_ms in function.spread_ms)
    return function.model_copy(update=times)

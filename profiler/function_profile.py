"""From the samples of one function to its profile."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median, quantiles
from typing import get_args

from openfaas.requirements import read_requirements
from profiler.files import files
from profiler.periods import periods
from profiler.ports import ports
from profiler.probe_run import SHORTEST_SEEN_MS, ProbeRun
from profiler.reconcile import probed_periods, reconciled
from profiler.sampling import Samples
from profiler.typical_run import traced_run, typical_run
from profiler.unshareable import unshareable
from workflow.profile import FunctionProfile, Period, PeriodKind


def function_profile(samples: Samples, runtime: str, handler: Path) -> FunctionProfile:
    """The profile of the function whose handler folder is `handler`.

    The latency is the median of the untraced runs, at one speed of the machine. The periods are
    those of a typical traced run, with the kinds of a typical run with the probe.
    """
    taken_ms = [run.latency_ms for run in samples.untraced]
    low, middle_ms, high = quantiles(taken_ms, n=4, method="inclusive")
    # How long it waits does not depend on that speed, but has to be known for it.
    waiting_ms = _waiting_ms(_periods(samples, round(middle_ms, 3)))
    latency_ms = round(samples.latency_ms(waiting_ms), 3)
    traced = [each.run for each in samples.traced]
    opened = files(traced)
    return FunctionProfile(
        latency_ms=latency_ms,
        samples=len(samples.untraced),
        spread_ms=(round(min(low, latency_ms), 3), round(max(high, latency_ms), 3)),
        reference_ms=round(samples.reference_ms, 4),
        sources=("probe", "strace") if traced else ("probe",),
        periods=_periods(samples, latency_ms),
        memory_mib=round(samples.memory_mib, 2),
        idle_mib=round(samples.idle_mib, 2) or None,
        files_read=opened.read,
        files_written=opened.written,
        ports=ports(traced),
        unshareable=unshareable(handler),
        input_bytes=samples.input_bytes,
        output_bytes=samples.output_bytes,
        runtime=runtime,
        requirements=tuple(str(each) for each in read_requirements(handler.name, handler)),
    )


def _periods(samples: Samples, latency_ms: float) -> tuple[Period, ...]:
    probed = _typical_kinds(samples.probed)
    if not samples.traced:
        return probed_periods(probed, latency_ms)
    run = typical_run([traced_run(each.run, each.delayed_ms) for each in samples.traced])
    held_ms, busy_ms = 0.0, latency_ms
    if latency_ms >= SHORTEST_SEEN_MS:  # else the probe cannot tell
        held_ms = _time_ms(probed, latency_ms, "cpu")
        busy_ms = held_ms + _time_ms(probed, latency_ms, "native")
    return reconciled(periods(run, latency_ms, held_ms, busy_ms), probed)


def _waiting_ms(periods: Sequence[Period]) -> float:
    return sum(period.duration_ms for period in periods if period.kind == "block")


def _time_ms(probed: ProbeRun, latency_ms: float, kind: PeriodKind) -> float:
    """For how long a run of `latency_ms` does `kind`."""
    whole = probed.duration_ms
    return probed.time_ms(kind) / whole * latency_ms if whole else 0.0


def _typical_kinds(runs: Sequence[ProbeRun]) -> ProbeRun:
    """The run whose times of each kind are nearest to their medians."""
    times = [[run.time_ms(kind) for kind in get_args(PeriodKind)] for run in runs]
    middle = [median(column) for column in zip(*times, strict=True)]
    return min(
        zip(runs, times, strict=True),
        key=lambda pair: sum(abs(one - other) for one, other in zip(pair[1], middle, strict=True)),
    )[0]

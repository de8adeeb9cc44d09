"""The prediction of a plan's replicas under load: percentiles, saturation, CPU, memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from itertools import zip_longest
from statistics import fmean

from chiron.predictor.load import Case, Crowd, Seen
from chiron.predictor.predict import Predictor
from chiron.predictor.speed import profile_at
from chiron.predictor.spread import Spread, percentile_ms
from chiron.predictor.uncertainty import Variant, ends, speeds
from chiron.predictor.unrolling import run_of
from chiron.scheduler.concurrency import concurrency, idle_mib, request_mib
from chiron.workflow.load import Load, LoadPrediction, LoadTime, LoadWithin, Throughput
from chiron.workflow.model import Workflow
from chiron.workflow.plan import DEFAULT_PERCENTILE, Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: The percentiles that are always predicted.
PERCENTILES = (50.0, 95.0, 99.0)
_MEDIAN = 50.0
_FASTEST = 0.01
#: The variants of a platform by one source of uncertainty.
_Source = Callable[[Profile, Platform], Iterator[Variant]]


def predict_load(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    load: Load,
    percentile: float = DEFAULT_PERCENTILE,
) -> LoadPrediction:
    """Return the latencies of requests of `load` with the replicas of `plan`.

    A percentile is that of a request alone, plus the added latency under load. The range has the
    sources of `chiron.predictor.predict.predict`, each simulated under the same load.

    Raises what `predict` raises.
    """
    plan.check_against(workflow)
    profile.require(workflow.functions)
    profile = profile_at(profile, platform.cpu_probe_ms)
    usual = crowd_of(plan, cases_of(workflow, profile, platform))
    varied = [
        [crowd_of(plan, cases) for cases in _varied(workflow, profile, platform, source)]
        for source in (ends, lambda _, place: speeds(place))
    ]
    seen, percents = usual.under(load), sorted({*PERCENTILES, percentile})
    times = _times(usual, varied, load, percents, seen)
    return LoadPrediction(
        load=load,
        replicas={wrap.name: wrap.replicas for wrap in plan.wraps},
        within=tuple(
            LoadWithin(percentile=percent, ms=time.ms, low_ms=time.low_ms, high_ms=time.high_ms)
            for percent, time in zip(percents, times, strict=False)
        ),
        mean=times[-1] if times else None,
        saturation=_saturation(usual, varied, platform),
        throughput_per_s=round(min(load.per_s or seen.per_s, usual.per_s), 4),
        cpu_ms=round(seen.cpu_ms, 4),
        memory_mib=_memory_mib(plan, min(seen.at_once, usual.replicas.limit)),
    )


def _times(
    usual: Crowd,
    varied: Sequence[Sequence[Crowd]],
    load: Load,
    percents: Sequence[float],
    seen: Seen,
) -> list[LoadTime]:
    """Return the percentiles and then the mean, with ranges; empty if the queue grows unbounded.

    No percentile is below that of requests without overlap.
    """
    errors = _errors(usual.platform)
    each_ms = [[_latencies_ms(crowd, load, percents) for crowd in crowds] for crowds in varied]
    each_ms.append([_at_speed(usual, load, percents, slower) for slower in errors])
    found_ms = _latencies_ms(usual, load, percents, seen)
    if math.inf in found_ms:
        return []
    times = list[LoadTime]()
    for place, ms in enumerate(found_ms):
        low_ms, high_ms = _range(ms, [[times_ms[place] for times_ms in each] for each in each_ms])
        if place < len(percents):
            low_ms = max(low_ms, _alone_least_ms(usual, varied, percents[place]))
        times.append(
            LoadTime(
                ms=round(ms, 4),
                low_ms=round(low_ms, 4),
                high_ms=round(high_ms, 4) if math.isfinite(high_ms) else None,
            )
        )
    return times


def _alone_least_ms(usual: Crowd, varied: Sequence[Sequence[Crowd]], percent: float) -> float:
    """Return the low end of the percentile `percent` of requests that do not overlap."""
    alone_ms = usual.alone_ms(percent)
    sources = [[crowd.alone_ms(percent) for crowd in crowds] for crowds in varied]
    slower_ms = [slower * alone_ms for slower in _errors(usual.platform)]
    return _range(alone_ms, [*sources, slower_ms])[0]


def cases_of(workflow: Workflow, profile: Profile, platform: Platform) -> list[Case]:
    """Return the runs of `workflow`, payload by payload."""
    profile = profile_at(profile, platform.cpu_probe_ms)
    return [_case(workflow, share.profile, share.weight, platform) for share in profile.mix]


def crowd_of(plan: Plan, cases: Sequence[Case]) -> Crowd:
    """Return the replicas of `plan`, each at its full concurrency."""
    counts = {wrap.name: wrap.replicas for wrap in plan.wraps}
    return Crowd(plan, cases, counts, concurrency(plan))


def judged_ms(crowd: Crowd, load: Load, percent: float) -> float:
    """Return the percentile `percent` of the latency; infinite if the queue grows unbounded."""
    return _latencies_ms(crowd, load, [percent])[0]


def _case(
    workflow: Workflow,
    profile: Profile,
    weight: float,
    platform: Platform,
    variant: Variant | None = None,
) -> Case:
    run = run_of(workflow, profile)
    predictor = Predictor(run.profile, *(variant or Variant(platform)))
    return Case(run, weight, predictor, Spread.of(run.workflow, run.profile, platform))


def _varied(
    workflow: Workflow, profile: Profile, platform: Platform, source: _Source
) -> Iterator[list[Case]]:
    """Yield the cases for each variant of a source of uncertainty."""
    mix = profile.mix
    runs = [run_of(workflow, share.profile) for share in mix]
    for variants in zip_longest(*(source(run.profile, platform) for run in runs)):
        yield [
            _case(workflow, share.profile, share.weight, platform, variant)
            for share, variant in zip(mix, variants, strict=True)
        ]


def _latencies_ms(
    crowd: Crowd, load: Load, percents: Sequence[float], seen: Seen | None = None
) -> list[float]:
    """Return percentiles of the latency, then the mean; infinite if the queue grows unbounded."""
    if load.per_s is not None and load.per_s >= crowd.per_s:
        return [math.inf] * (len(percents) + 1)
    seen = seen or crowd.under(load)
    found_ms = [crowd.alone_ms(each) + seen.added_ms(each) for each in (*percents, _MEDIAN)]
    median_ms = percentile_ms([(1.0, seen.loaded_ms)], _MEDIAN)
    return [*found_ms[:-1], found_ms[-1] + fmean(seen.loaded_ms) - median_ms]


def _at_speed(crowd: Crowd, load: Load, percents: Sequence[float], slower: float) -> list[float]:
    """Return the latencies if all takes `slower` times as long: a higher rate on a slower clock."""
    if load.per_s is not None:
        load = load.model_copy(update={"per_s": slower * load.per_s})
    return [slower * ms for ms in _latencies_ms(crowd, load, percents)]


def _errors(platform: Platform) -> tuple[float, ...]:
    """Return the factors of latency by the platform's unexplained prediction error."""
    error = platform.prediction_error
    return (max(_FASTEST, 1 - error), 1 + error) if error else ()


def _range(value: float, sources: Sequence[Sequence[float]]) -> tuple[float, float]:
    """Return the range of a value over independent sources, whose squared errors add up."""
    below = math.hypot(*(value - min([value, *each]) for each in sources))
    above = math.hypot(*(max([value, *each]) - value for each in sources))
    return max(0.0, value - below), value + above


def _saturation(usual: Crowd, varied: Sequence[Sequence[Crowd]], platform: Platform) -> Throughput:
    sources = [[crowd.per_s for crowd in crowds] for crowds in varied]
    sources.append([usual.per_s / slower for slower in _errors(platform)])
    low, high = _range(usual.per_s, sources)
    return Throughput(
        per_s=round(usual.per_s, 4), low_per_s=round(low, 4), high_per_s=round(high, 4)
    )


def _memory_mib(plan: Plan, at_once: int) -> int:
    """Return the memory of all replicas while each executes `at_once` requests."""
    return sum(
        wrap.replicas * math.ceil(idle_mib(wrap) + at_once * request_mib(wrap))
        if wrap.demand
        else wrap.replicas * wrap.memory_mib
        for wrap in plan.wraps
    )

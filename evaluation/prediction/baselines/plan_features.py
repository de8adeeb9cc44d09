"""A plan as one vector of fixed length, for baselines that know neither sequences nor graphs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from evaluation.prediction.baselines.function_features import function_features
from evaluation.prediction.baselines.samples import Process, Sample, WrapShape
from workflow.profile import FunctionProfile, PeriodKind

Stage = tuple[WrapShape, ...]


def plan_features(sample: Sample) -> list[float]:
    """How many of everything, how long it would take alone, and what its functions are like.

    Times are given as logarithms, and relative to the sum of the longest solo latencies too, so
    that what is learnt from fast functions may hold for slow ones.
    """
    solo_ms = sample.solo_ms
    times = _times_ms(sample)
    return [
        *_counts(sample),
        math.log1p(solo_ms),
        *map(math.log1p, times),
        *(time / solo_ms if solo_ms else 0.0 for time in times),
        *_functions(sample),
    ]


def _counts(sample: Sample) -> list[float]:
    processes = [len(wrap.processes) for stage in sample.stages for wrap in stage]
    threads = [len(p) for stage in sample.stages for wrap in stage for p in wrap.processes]
    return [
        float(sample.mechanism == "pool"),
        len(sample.stages),
        sum(wrap.remote for stage in sample.stages for wrap in stage),
        sum(processes) - len(processes),
        max(processes),
        sum(threads),
        max(threads),
        sum(len(wrap.processes[0]) for stage in sample.stages for wrap in stage),
        max(
            len(wrap.processes) / wrap.cpus for stage in sample.stages for wrap in stage
        ),
    ]  # fmt: skip


def _times_ms(sample: Sample) -> list[float]:
    """For every kind of time: of the slowest process of every stage, and of whole stages."""
    return [
        total
        for measure in (_latency_ms, _of_kind("cpu"), _of_kind("native"), _of_kind("block"))
        for total in (
            sum(max(map(measure, _processes(stage))) for stage in sample.stages),
            sum(sum(map(measure, _processes(stage))) for stage in sample.stages),
            sum(measure(stage[0].processes[0]) for stage in sample.stages),
        )
    ]


def _functions(sample: Sample) -> list[float]:
    """Mean and maximum of every feature over the tasks."""
    columns = list(zip(*map(function_features, _tasks(sample)), strict=True))
    return [sum(column) / len(column) for column in columns] + [max(column) for column in columns]


def _tasks(sample: Sample) -> Sequence[FunctionProfile]:
    return [f for stage in sample.stages for process in _processes(stage) for f in process]


def _processes(stage: Stage) -> list[Process]:
    return [process for wrap in stage for process in wrap.processes]


def _latency_ms(process: Process) -> float:
    return sum(function.latency_ms for function in process)


def _of_kind(kind: PeriodKind) -> Callable[[Process], float]:
    return lambda process: sum(function.time_ms(kind) for function in process)

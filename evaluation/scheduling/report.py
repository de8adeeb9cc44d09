"""Everything that is measured of the scheduler, held against what it has to show."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from evaluation.bench.machine import Machine
from evaluation.scheduling.exhaustive import SmallStage
from evaluation.scheduling.large import LargeCase
from evaluation.scheduling.laws import Trial
from evaluation.scheduling.published import PublishedCase
from workflow.documents import Document

#: Seconds that the whole command may take for a published workflow, and its memory at most.
COMMAND_S, PEAK_MIB = 2.0, 300.0
#: Of small stages, how many have the least number of processes, and how far the latency is off.
SAME_PROCESSES, EXCESS = 0.98, 0.02
#: A tie in the prediction's last digit is no loss.
_TIE_MS = 0.001


class Requirement(Document):
    """One thing to show: the bound, what was measured, and whether that keeps it."""

    name: str
    bound: str
    measured: str
    met: bool


class SchedulingReport(Document):
    """All cases, and the requirements that follow from them."""

    format: int = 1
    machine: Machine
    command: str
    requirements: tuple[Requirement, ...]
    published: tuple[PublishedCase, ...]
    large: tuple[LargeCase, ...]
    small_stages: tuple[SmallStage, ...]
    trials: tuple[Trial, ...]

    @classmethod
    def of(
        cls,
        machine: Machine,
        command: str,
        published: tuple[PublishedCase, ...],
        large: tuple[LargeCase, ...],
        small_stages: tuple[SmallStage, ...],
        trials: tuple[Trial, ...],
    ) -> SchedulingReport:
        """The report of these cases, which the given command has measured."""
        return cls(
            machine=machine,
            command=command,
            requirements=(
                *_of_published(published),
                *_of_large(large),
                *_of_small_stages(small_stages),
                *_of_trials(trials),
            ),
            published=published,
            large=large,
            small_stages=small_stages,
            trials=trials,
        )


def _of_published(cases: tuple[PublishedCase, ...]) -> Iterator[Requirement]:
    if not cases:
        return
    yield _all("published SLOs met", [case.meets_slo for case in cases])
    fewer = [case.processes <= case.published_processes for case in cases]
    yield _all("no more processes than published", fewer)
    faster = [case.ours_at_published_ms <= case.published_ms + _TIE_MS for case in cases]
    yield _all("no slower at the published processes", faster)
    for case in cases:
        if case.bound_s is not None:
            yield _most(f"search, {case.workflow}", case.search.cpu_s, case.bound_s, "s")
    yield _most("slowest command", max(c.command.wall_s for c in cases), COMMAND_S, "s")


def _of_large(cases: tuple[LargeCase, ...]) -> Iterator[Requirement]:
    sizes = dict.fromkeys((case.functions, case.stages, case.bound_s) for case in cases)
    for functions, stages, bound_s in sizes:
        slowest_s = max(case.command.search_s for case in cases if case.functions == functions)
        plural = "stage" if stages == 1 else "stages"
        name = f"slowest search, {functions} functions in {stages} {plural}"
        yield _most(name, slowest_s, bound_s, "s")
    if cases:
        searching_mib = max(case.command.search_mib for case in cases)
        yield _most("peak memory, search", searching_mib, PEAK_MIB, "MiB")
        command_mib = max(case.command.peak_mib for case in cases)
        yield _most("peak memory, whole command", command_mib, PEAK_MIB, "MiB")


def _of_small_stages(cases: tuple[SmallStage, ...]) -> Iterator[Requirement]:
    if not cases:
        return
    same = statistics.fmean(case.processes == case.least_processes for case in cases)
    excess = statistics.fmean(case.latency_ms / case.least_ms - 1 for case in cases)
    yield Requirement(
        name=f"fewest processes possible, {len(cases)} small stages",
        bound=f">= {SAME_PROCESSES:.0%}",
        measured=f"{same:.1%}",
        met=same >= SAME_PROCESSES,
    )
    yield Requirement(
        name="latency over the least possible, mean",
        bound=f"<= {EXCESS:.0%}",
        measured=f"{excess:.2%}",
        met=excess <= EXCESS,
    )


def _of_trials(trials: tuple[Trial, ...]) -> Iterator[Requirement]:
    if trials:
        yield _all("no fixed model is better", [not trial.better_models for trial in trials])
        yield _all("a looser SLO costs no more CPUs", [not t.dearer_slos_ms for t in trials])


def _all(name: str, kept: list[bool]) -> Requirement:
    return Requirement(
        name=name, bound="all", measured=f"{sum(kept)} of {len(kept)}", met=all(kept)
    )


def _most(name: str, measured: float, bound: float, unit: str) -> Requirement:
    return Requirement(
        name=name,
        bound=f"<= {bound:g} {unit}",
        measured=f"{measured:.3g} {unit}",
        met=measured <= bound,
    )

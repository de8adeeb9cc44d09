"""Compares our plans for a published testbed with the published scheduler's (Algorithm 2)."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from itertools import combinations, product
from pathlib import Path
from typing import NamedTuple

from chiron.evaluation.scheduling.command import CommandRun, artefacts, run_schedule
from chiron.evaluation.scheduling.exhaustive import predicted_ms
from chiron.evaluation.testbed import read_platform, read_profile
from chiron.predictor.compiling import kernel
from chiron.scheduler.choices import Choices
from chiron.scheduler.kernighan_lin import Functions, exchanged
from chiron.scheduler.layout import Layout, StageLayout, plan_from_layout
from chiron.scheduler.options import Options
from chiron.scheduler.partition import Costs, Partition
from chiron.scheduler.problem import Problem
from chiron.scheduler.schedule import job_of, schedule
from chiron.scheduler.shapes import Shape, slots_of
from chiron.scheduler.slots import by_wrap
from chiron.workflow.documents import Document, dump, read_json
from chiron.workflow.folder import parse_workflow
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan

Latency = Callable[[Functions, Functions], float]


class Case(NamedTuple):
    """A published plan: its SLO, the processes of its widest stage, and the search's seconds."""

    workflow: str
    slo_ms: float
    processes: int
    search_s: float | None = None


CASES = (
    Case("finra5", 119.0, 1),
    Case("finra50", 255.0, 6, 3.0),
    Case("finra100", 350.0, 6, 29.6),
    Case("finra200", 492.0, 8, 460.0),
    Case("sn", 72.0, 1),
    Case("mr", 63.0, 1),
    Case("SLApp", 104.0, 2),
    Case("SLApp-V", 138.0, 3),
)


class PublishedCase(Document):
    """One workflow: our plan, and both searches at the published number of processes.

    ``processes`` counts the widest stage. ``search_s`` is CPU time, with the kernel loaded before.
    """

    workflow: str
    slo_ms: float
    meets_slo: bool
    latency_ms: float
    processes: int
    wraps: int
    published_processes: int
    ours_at_published_ms: float
    published_ms: float
    published_search_s: float | None
    search_s: float
    command: CommandRun


def compare_published(folder: Path, samples: int) -> Iterator[PublishedCase]:
    """Yield a row for each workflow of the testbed in `folder`; times are of `samples` runs.

    Raises ``missing-file``, ``bad-json`` or ``bad-document`` if `folder` is no testbed.
    """
    kernel()  # load or compile it before the first timed run
    for case in CASES:
        yield _compared(case, folder, samples)


def _compared(case: Case, folder: Path, samples: int) -> PublishedCase:
    profile, platform = read_profile(folder), read_platform()
    file = folder / f"{case.workflow}.workflow.json"
    workflow = parse_workflow(read_json(file, "workflow"), case.workflow.lower())
    taken = []
    for _ in range(samples):
        start = time.process_time()
        plan = schedule(workflow, profile, platform, case.slo_ms, Choices(trigger="stage"))
        taken.append(time.process_time() - start)
    job = job_of(workflow, profile, platform, case.slo_ms, Choices(trigger="stage"))
    (options,) = Options.all_of(job, "fork")
    text = file.read_text(encoding="utf-8")
    with artefacts(text, dump(profile), dump(platform)) as files:
        command = run_schedule(files, case.slo_ms, samples)
    return PublishedCase(
        workflow=case.workflow,
        slo_ms=case.slo_ms,
        meets_slo=bool(plan.meets_slo),
        latency_ms=predicted_ms(plan),
        processes=widest_stage(plan, workflow),
        wraps=len(plan.wraps),
        published_processes=case.processes,
        ours_at_published_ms=_ours_ms(options, case.processes),
        published_ms=published_ms(options, case.processes),
        published_search_s=case.search_s,
        search_s=round(statistics.median(taken), 4),
        command=command,
    )


def widest_stage(plan: Plan, workflow: Workflow) -> int:
    """Return the most processes of a stage, over all wraps."""
    return max(
        sum(not {*stage}.isdisjoint(tasks) for wrap in plan.wraps for tasks in wrap.processes)
        for stage in workflow.stages
    )


def published_ms(options: Options, processes: int) -> float:
    """Return our prediction for the published algorithm's plan of `processes` processes.

    It is the better of two layouts. The first layout (line 7) has a first wrap of the processes
    that fork during a remote call. The last layout (line 16), if the SLO allows, is one wrap.
    """
    problem = options.search.problem
    platform, workflow = problem.platform, problem.workflow
    first = min(processes, int(platform.rpc_ms // platform.process_block_ms))
    latencies = []
    for sizes in {(processes,), (first, *[1] * (processes - first))}:
        layout: Layout = tuple(published_stage(problem, s, sizes) for s in workflow.stages)
        plan = plan_from_layout(
            layout,
            workflow,
            options.job.profile,
            planner="pgp",
            mechanism="fork",
            trigger=options.job.trigger,
        )
        latencies.append(options.judged(plan).judged_ms)
    return min(latencies)


def _ours_ms(options: Options, processes: int) -> float:
    """Return the least latency of our plans with at most `processes` processes in a stage."""
    candidates = options.search.candidates(processes, options.job.limits)
    made = [options.made(candidate) for candidate in candidates]
    return min(option.judged_ms for option in made if option is not None)


def published_stage(
    problem: Problem, tasks: tuple[str, ...], sizes: tuple[int, ...]
) -> StageLayout:
    """Put the tasks of one stage into processes as lines 8-11 do; wraps have `sizes` processes."""
    shape = Shape((sizes,))
    slots = slots_of(problem, shape, 0, min(len(tasks), shape.cpus))
    numbers = [problem.number_of[problem.workflow.function_of(task)] for task in tasks]
    processes = published_partition(Costs(problem, slots, together=False), numbers)
    waiting: dict[int, list[str]] = {}
    for number, task in zip(numbers, tasks, strict=True):
        waiting.setdefault(number, []).append(task)
    return tuple(
        tuple(tuple(waiting[n].pop() for n in problem.in_order(process)) for process in wrap)
        for wrap in by_wrap(processes, slots.sizes)
    )


def published_partition(costs: Costs, functions: list[int]) -> Partition:
    """Deal functions to processes in turn, then run Kernighan-Lin once for each pair."""
    count = len(costs.slots.offsets_ms)
    processes = [tuple(sorted(functions[start::count])) for start in range(count)]
    for i, j in combinations(range(count), 2):

        def latency_ms(a: Functions, b: Functions, i: int = i, j: int = j) -> float:
            changed = {**dict(enumerate(processes)), i: a, j: b}
            return costs.latency_ms(tuple(changed.values()))

        steps = _swaps(processes[i], processes[j], latency_ms)
        _, processes[i], processes[j] = min(steps, key=lambda step: step[0])
    return tuple(processes)


def _swaps(
    a: Functions, b: Functions, latency_ms: Latency
) -> Iterator[tuple[float, Functions, Functions]]:
    """Yield the stage at first, then after each best swap of unmoved functions (lines 19-23)."""
    yield latency_ms(a, b), a, b
    free_a, free_b = list(a), list(b)
    while free_a and free_b:
        pairs = product(sorted(set(free_a)), sorted(set(free_b)))
        swaps = [(exchanged(a, x, y), exchanged(b, y, x), x, y) for x, y in pairs]
        stage_ms, a, b, x, y = min((latency_ms(*swap[:2]), *swap) for swap in swaps)
        free_a.remove(x)
        free_b.remove(y)
        yield stage_ms, a, b

"""Our plans for a published testbed against those of the published scheduler."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation.scheduling.command_run import CommandRun, artefacts, run_schedule
from evaluation.scheduling.published_search import published_stage
from evaluation.scheduling.timing import Duration, timed
from evaluation.testbed import read_platform, read_profile
from scheduler.layout import Layout, plan_from_layout
from scheduler.options import Options
from scheduler.schedule import job_of, schedule
from workflow.documents import Document, dump, read_json
from workflow.folder import parse_workflow
from workflow.plan import Plan


@dataclass(frozen=True)
class Case:
    """A published plan: its SLO, the processes of its widest stage, and what finding it took."""

    workflow: str
    slo_ms: float
    processes: int
    search_s: float | None = None
    #: How long ours may take.
    bound_s: float | None = None


CASES = (
    Case("finra5", 119.0, 1),
    Case("finra50", 255.0, 6, 3.0, 0.1),
    Case("finra100", 350.0, 6, 29.6, 0.3),
    Case("finra200", 492.0, 8, 460.0, 1.0),
    Case("sn", 72.0, 1),
    Case("mr", 63.0, 1),
    Case("SLApp", 104.0, 2),
    Case("SLApp-V", 138.0, 3),
)


class PublishedCase(Document):
    """One workflow: our plan, and both searches at the published number of processes.

    ``processes`` are those of the widest stage.
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
    bound_s: float | None
    search: Duration
    command: CommandRun


def compare_published(folder: Path, samples: int) -> Iterator[PublishedCase]:
    """A row for every workflow of the testbed in `folder`, everything timed `samples` times.

    Raises
    ------
    ChironError
        ``missing-file``, ``bad-json`` or ``bad-document`` where `folder` holds something else.
    """
    for case in CASES:
        yield _compared(case, folder, samples)


def _compared(case: Case, folder: Path, samples: int) -> PublishedCase:
    profile, platform = read_profile(folder), read_platform()
    document = read_json(folder / f"{case.workflow}.workflow.json", "workflow")
    workflow = parse_workflow(document, case.workflow.lower())
    search, plan = timed(lambda: schedule(workflow, profile, platform, case.slo_ms), samples)
    options = Options.of(job_of(workflow, profile, platform, case.slo_ms), "fork")
    text = (folder / f"{case.workflow}.workflow.json").read_text(encoding="utf-8")
    with artefacts(text, dump(profile), dump(platform)) as files:
        command = run_schedule(files, case.slo_ms, samples)
    return PublishedCase(
        workflow=case.workflow,
        slo_ms=case.slo_ms,
        meets_slo=bool(plan.meets_slo),
        latency_ms=plan.predicted.latency_ms if plan.predicted else 0.0,
        processes=widest_stage(plan),
        wraps=len(plan.wraps),
        published_processes=case.processes,
        ours_at_published_ms=_ours_ms(options, case.processes),
        published_ms=published_ms(options, case.processes),
        published_search_s=case.search_s,
        bound_s=case.bound_s,
        search=search,
        command=command,
    )


def widest_stage(plan: Plan) -> int:
    """The most processes that run at once, over all wraps."""
    numbers = {stage.stage for wrap in plan.wraps for stage in wrap.stages}
    return max(
        sum(sum(map(bool, part.processes)) for _, part in plan.stage(number)) for number in numbers
    )


def published_ms(options: Options, processes: int) -> float:
    """What the published algorithm's plan of `processes` processes takes, as we predict it.

    The better one of what it begins with, as many processes in the first wrap as a remote call
    outlasts (line 7), and of what it ends with where the SLO bears it, all in one wrap (line 16).
    """
    problem = options.search.problem
    platform, workflow = problem.platform, problem.workflow
    first = min(processes, int(platform.rpc_ms // platform.process_block_ms))
    latencies = []
    for sizes in {(processes,), (first, *[1] * (processes - first))}:
        layout: Layout = tuple(published_stage(problem, s, sizes) for s in workflow.stages)
        plan = plan_from_layout(
            layout, workflow, options.job.profile, model="pgp", mechanism="fork"
        )
        latencies.append(options.judged(plan).judged_ms)
    return min(latencies)


def _ours_ms(options: Options, processes: int) -> float:
    """The fastest of our plans that have at most `processes` processes in a stage."""
    candidates = options.search.candidates(processes, options.job.limits)
    made = [options.made(candidate) for candidate in candidates]
    return min(option.judged_ms for option in made if option is not None)

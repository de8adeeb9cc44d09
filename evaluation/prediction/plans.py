"""Random plans, measured in batches: each stage's tasks are put into random processes."""

from __future__ import annotations

import random
from collections.abc import Container, Iterator, Mapping, Sequence
from functools import partial

from chiron.deployment.background_load import mean_share, others_share
from chiron.deployment.launcher import Deployment
from chiron.deployment.measure import CheckedPayload, checked_invoke, checked_payloads
from chiron.evaluation.bench.bench import Leftovers, deploy
from chiron.evaluation.bench.setup import Place
from chiron.evaluation.bench.variants import REPLICATE, with_replicate
from chiron.evaluation.prediction.rows import MeasuredRow, TimedRequest
from chiron.profiler.cpu_speed import with_cpu_speed
from chiron.scheduler.layout import Layout, StageLayout, plan_from_layout
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.profile import Profile
from chiron.workflow.streaming import as_begun

#: One plan in this many spreads its processes over two wraps.
SPREAD_ONE_IN = 4
#: One plan in this many gives each wrap a single CPU, whatever the number of its processes.
CRAMPED_ONE_IN = 4
#: Plans deployed at once: few enough for the memory of a small machine.
BATCH = 8


def random_plans(
    workflow: Workflow,
    profile: Profile,
    mechanism: str,
    *,
    count: int,
    most_processes: int,
    seed: int,
) -> Iterator[Plan]:
    """Yield `count` distinct plans of at most `most_processes` processes in a stage of a wrap.

    Equal arguments give equal plans. Fewer plans come if no new plan is found in many draws.
    """
    generator = random.Random(seed)  # noqa: S311  (plans, not secrets)
    # Readers of streams run beside their writers, so they share a stage here.
    stages = (as_begun(workflow) if workflow.streaming else workflow).stages
    seen: set[Layout] = set()
    for _ in range(count * 50):
        wraps = 2 if generator.randrange(SPREAD_ONE_IN) == 0 else 1
        layout = tuple(_stage(each, wraps, most_processes, generator) for each in stages)
        if layout in seen:
            continue
        seen.add(layout)
        yield plan_from_layout(
            layout,
            workflow,
            profile,
            planner="pgp",
            mechanism=mechanism,
            node_cpus=1 if generator.randrange(CRAMPED_ONE_IN) == 0 else None,
            prefix=f"{mechanism}{len(seen)}-",
        )
        if len(seen) == count:
            return


def _stage(
    tasks: Sequence[str], wraps: int, most_processes: int, generator: random.Random
) -> StageLayout:
    count = generator.randint(1, min(len(tasks), most_processes * wraps))
    processes: list[list[str]] = [[] for _ in range(count)]
    shuffled = generator.sample(tasks, len(tasks))
    for index, task in enumerate(shuffled):
        # The first `count` tasks fill a process each, so that none is empty.
        processes[index if index < count else generator.randrange(count)].append(task)
    split = -(-count // wraps)
    groups = [processes[:split], processes[split:]]
    return tuple(tuple(map(tuple, group)) for group in groups if group)


def missing_batches(drawn: Sequence[Plan], measured: Container[Plan]) -> Iterator[dict[str, Plan]]:
    """Yield, for each batch of `drawn`, its plans that are not `measured`, by label.

    A batch without such plans is left out.
    """
    for start in range(0, len(drawn), BATCH):
        batch = enumerate(drawn[start : start + BATCH], start=start + 1)
        missing = {f"plan {number}": plan for number, plan in batch if plan not in measured}
        if missing:
            yield missing


def measure_batch(
    folder: WorkflowFolder,
    place: Place,
    plans: Mapping[str, Plan],
    leftovers: Leftovers,
    *,
    profile: Profile,
    samples: int,
) -> list[MeasuredRow]:
    """Return a row for each plan that deploys and answers right; the first is measured twice.

    Payloads come in proportion to their weights, in each round the same for all plans.
    Raises the errors of deploying, and ``nothing-deployed`` if no plan answers right.
    """
    first = next(iter(plans))
    checked = checked_payloads(folder, profile, check=True, progress=place.progress)
    with (
        leftovers.removed_from(place.launcher.gateway),
        deploy(folder, place, with_replicate(plans, [first]), leftovers, checked) as bench,
    ):
        requests: dict[str, list[TimedRequest]] = {label: [] for label in bench.deployed}
        looks = []
        for number in range(samples):
            looks.append(others_share())
            (asked,) = bench.requests(number, 1)
            for label, deployed in bench.turns(number):
                requests[label].append(_request(deployed.deployment, asked))
    again = requests.pop(f"{REPLICATE}{first}", [])
    return [
        MeasuredRow(
            plan=plans[label],
            requests=tuple(row),
            again=tuple(again) if label == first else (),
            others=mean_share(looks),
        )
        for label, row in requests.items()
    ]


def _request(deployment: Deployment, asked: CheckedPayload) -> TimedRequest:
    payload, check = asked
    took_ms, speed = with_cpu_speed(partial(checked_invoke, deployment, payload.content, check))
    return TimedRequest(
        latency_ms=round(took_ms, 4), probe_ms=round(speed.probe_ms, 4), payload=payload.name
    )

"""Plans at random: any partition of a workflow's tasks into processes and wraps is as likely."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence

from scheduler.layout import Layout, StageLayout, plan_from_layout, wrap_name
from workflow.model import Workflow
from workflow.plan import Mechanism, Plan
from workflow.profile import Profile

#: One plan in this many spreads its processes over two wraps.
SPREAD_ONE_IN = 4
#: One in this many gives each wrap a single CPU, however many processes it runs.
CRAMPED_ONE_IN = 4


def random_plans(
    workflow: Workflow,
    profile: Profile,
    mechanism: Mechanism,
    *,
    count: int,
    most_processes: int,
    seed: int,
) -> Iterator[Plan]:
    """`count` distinct plans of at most `most_processes` processes in a stage of a wrap.

    Equal arguments give equal plans. Fewer come where the workflow has fewer.
    """
    generator = random.Random(seed)  # noqa: S311  (plans, not secrets)
    seen: set[Layout] = set()
    for _ in range(count * 50):
        layout = _layout(workflow, most_processes, generator)
        if layout in seen:
            continue
        seen.add(layout)
        node_cpus = 1 if generator.randrange(CRAMPED_ONE_IN) == 0 else None
        yield _plan(layout, len(seen), workflow, profile, mechanism, node_cpus)
        if len(seen) == count:
            return


def _layout(workflow: Workflow, most_processes: int, generator: random.Random) -> Layout:
    wraps = 2 if generator.randrange(SPREAD_ONE_IN) == 0 else 1
    return tuple(_stage(stage, wraps, most_processes, generator) for stage in workflow.stages)


def _stage(
    tasks: Sequence[str], wraps: int, most_processes: int, generator: random.Random
) -> StageLayout:
    count = generator.randint(1, min(len(tasks), most_processes * wraps))
    processes: list[list[str]] = [[] for _ in range(count)]
    shuffled = generator.sample(tasks, len(tasks))
    for index, task in enumerate(shuffled):
        # The first tasks make sure that no process is empty.
        processes[index if index < count else generator.randrange(count)].append(task)
    split = -(-count // wraps)
    groups = [processes[:split], processes[split:]]
    return tuple(tuple(map(tuple, group)) for group in groups if group)


def _plan(
    layout: Layout,
    number: int,
    workflow: Workflow,
    profile: Profile,
    mechanism: Mechanism,
    node_cpus: int | None,
) -> Plan:
    wraps = max(map(len, layout))
    names = [
        wrap_name(workflow.name, f"{mechanism}{number}-wrap{index + 1}") for index in range(wraps)
    ]
    return plan_from_layout(
        layout,
        workflow,
        profile,
        model="pgp",
        mechanism=mechanism,
        node_cpus=node_cpus,
        names=names,
    )

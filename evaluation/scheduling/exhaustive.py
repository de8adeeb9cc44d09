"""Random workflows, and the search's plans of small stages against the best of all plans."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from functools import cache
from itertools import permutations, product
from operator import add
from typing import Any

from chiron.predictor.mechanisms import EVERYWHERE, mechanism_of
from chiron.predictor.predict import Predictor
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule
from chiron.scheduler.slots import slots
from chiron.workflow.documents import Document
from chiron.workflow.folder import parse_workflow
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan, Processes
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Period, PeriodKind, Profile

#: The name of the workflow of random functions.
WORKFLOW = "random"
#: A platform with plausible constants.
PLATFORM = Platform(
    format=1,
    name="random",
    cpus=40,
    rpc_ms=20.0,
    invoke_ms=4.0,
    ipc_ms=0.2,
    process_startup_ms=13.0,
    process_block_ms=4.0,
    pool_dispatch_ms=1.0,
    thread_startup_ms=0.2,
    switch_interval_ms=5.0,
    switch_cost_ms=0.01,
)
#: The most periods of a function, and the longest period.
_PERIODS, _LONGEST_MS = 6, 12.0
#: The names of the functions of one process, in the order in which they start.
Process = tuple[str, ...]
#: The most functions of a stage.
LARGEST = 7
#: Kinds of periods: computing with the GIL and waiting; and also computing without the GIL.
KINDS: tuple[tuple[PeriodKind, ...], ...] = (("cpu", "block"), ("cpu", "native", "block"))
#: `LARGEST` if functions compete for cores: then every order counts, a hundred times the work.
_LARGEST_COMPETING = 6


class SmallStage(Document):
    """One stage: our plan, the least processes for the SLO, the least latency with `processes`."""

    functions: int
    mechanism: str
    slo_ms: float
    processes: int
    least_processes: int
    latency_ms: float
    least_ms: float


def compare_small_stages(count: int, seed: int) -> Iterator[SmallStage]:
    """Yield `count` random stages in one wrap, each with an SLO that some plan meets."""
    for number in range(count):
        yield _compared(random.Random(f"{seed}-{number}"))  # noqa: S311  (a simulation, no secret)


def _compared(r: random.Random) -> SmallStage:
    kinds = r.choice(KINDS)
    size = r.randint(2, LARGEST if "native" not in kinds else _LARGEST_COMPETING)
    profile = random_profile(size, kinds, r.randrange(1 << 32))
    startup_ms, block_ms = r.choice([1.0, 4.0, 13.0]), r.choice([0.5, 1.0, 4.0])
    changed = {"process_startup_ms": startup_ms, "process_block_ms": block_ms}
    platform = PLATFORM.model_copy(update=changed)
    mechanism = r.choice(EVERYWHERE)
    least_ms = least_latencies_ms(profile, platform, mechanism)
    share = r.random()
    slo_ms = round(min(least_ms) + share * (least_ms[0] - min(least_ms)) + 0.0005, 3)
    plan = schedule(
        workflow_of(in_stages(profile, 1)),
        profile,
        platform,
        slo_ms,
        Choices(mechanism=mechanism, max_functions=1),
    )
    return SmallStage(
        functions=size,
        mechanism=mechanism,
        slo_ms=slo_ms,
        processes=plan.cpus,
        least_processes=next(n for n, ms in enumerate(least_ms, start=1) if ms <= slo_ms),
        latency_ms=predicted_ms(plan),
        least_ms=round(least_ms[plan.cpus - 1], 4),
    )


def predicted_ms(plan: Plan) -> float:
    """Return the predicted latency of a scheduled plan."""
    if plan.predicted is None:
        raise ValueError("a schedule is predicted")
    return plan.predicted.latency_ms


def least_latencies_ms(profile: Profile, platform: Platform, mechanism: str) -> list[float]:
    """Return the least latency of a stage of all functions with at most 1, 2, 3, ... processes.

    If no function computes without the GIL, processes do not affect each other: each is simulated
    alone, and the longest gets the slot that is ready first.
    Otherwise all processes are simulated together, in every order.
    """
    predictor = Predictor(profile, platform)
    names = tuple(sorted(profile.functions))
    competing = any(function.time_ms("native") for function in profile.functions.values())
    least_ms = [float("inf")] * len(names)

    @cache
    def alone_ms(members: Process) -> float:
        return min(predictor.simulate((o,), 1, mechanism)[0] for o in permutations(members))

    offsets = [slots((n + 1,), 0, mechanism, platform).offsets_ms for n in range(len(names))]
    for processes in _partitions(names):
        count = len(processes)
        if not competing or count in (1, len(names)):
            times = sorted(map(alone_ms, processes), reverse=True)
            latency_ms = max(map(add, times, sorted(offsets[count - 1])))
        else:
            orders = _orders(processes)
            latency_ms = min(stage_ms(predictor, o, count, mechanism) for o in orders)
        least_ms[count - 1] = min(least_ms[count - 1], latency_ms)
    return [min(least_ms[: n + 1]) for n in range(len(names))]


def stage_ms(predictor: Predictor, processes: Processes, cpus: int, mechanism: str) -> float:
    """Return the latency of a wrap whose tasks all start at once, with gathering of results."""
    gathering_ms = mechanism_of(mechanism).costs(predictor.platform).gathering_ms(len(processes))
    return max(predictor.simulate(processes, cpus, mechanism)) + gathering_ms


def _partitions(names: Process) -> Iterator[tuple[Process, ...]]:
    """Yield every way to put `names` into processes."""
    if not names:
        yield ()
        return
    for rest in _partitions(names[1:]):
        yield ((names[0],), *rest)
        for place, members in enumerate(rest):
            yield (*rest[:place], (names[0], *members), *rest[place + 1 :])


def _orders(processes: tuple[Process, ...]) -> Iterator[tuple[Process, ...]]:
    """Yield every order of the processes, and of the functions in each process."""
    for arranged in permutations(processes):
        yield from product(*map(permutations, arranged))


def random_profile(count: int, kinds: Sequence[PeriodKind], seed: int) -> Profile:
    """Return the profile of `count` functions with random periods of `kinds`."""
    r = random.Random(seed)  # noqa: S311  # a simulation, no secret
    functions = {f"f{number:04d}": _function(r, kinds) for number in range(count)}
    return Profile(format=1, workflow=WORKFLOW, functions=functions)


def in_stages(profile: Profile, count: int) -> list[list[str]]:
    """Return the functions of `profile`, each once, in `count` stages of equal width."""
    names = sorted(profile.functions)
    width = -(-len(names) // count)
    return [names[start : start + width] for start in range(0, len(names), width)]


def states_of(stages: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Return a workflow.json with a Parallel for each stage and a Task for each function."""
    states: dict[str, Any] = {}
    for number, functions in enumerate(stages):
        tasks = {
            f"{number}-{place}": {"Type": "Task", "Resource": name, "End": True}
            for place, name in enumerate(functions)
        }
        branches = [{"StartAt": name, "States": {name: task}} for name, task in tasks.items()]
        last = number + 1 == len(stages)
        after = {"End": True} if last else {"Next": f"stage {number + 1}"}
        states[f"stage {number}"] = {"Type": "Parallel", "Branches": branches} | after
    return {"StartAt": "stage 0", "States": states}


def workflow_of(stages: Sequence[Sequence[str]]) -> Workflow:
    """Return the workflow of `states_of`."""
    return parse_workflow(states_of(stages), WORKFLOW)


def _function(r: random.Random, kinds: Sequence[PeriodKind]) -> FunctionProfile:
    periods, end_ms = list[Period](), 0.0
    for _ in range(r.randint(1, _PERIODS)):
        duration_ms = round(r.uniform(0.2, _LONGEST_MS), 3)
        periods.append(Period(kind=r.choice(kinds), start_ms=end_ms, duration_ms=duration_ms))
        end_ms = round(end_ms + duration_ms, 3)
    return FunctionProfile(latency_ms=end_ms, periods=tuple(periods))

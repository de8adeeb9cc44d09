"""The path of a plan's objects between wraps, and its costs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow, names_in
from chiron.workflow.paths import Path, PathKind
from chiron.workflow.plan import Orchestrator, Plan
from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import Profile

#: The cost if no path was measured.
_FREE = PathCost(ms=0.0, ms_per_mb=0.0)


class Way(NamedTuple):
    """The path of objects; ``straight``: from wrap to wrap, not by way of the home."""

    path: Path
    cost: PathCost
    straight: bool

    @property
    def is_free(self) -> bool:
        """Whether objects cost nothing beyond the calls that carry them."""
        return self.cost.ms_per_mb == 0.0 and (self.cost.ms == 0.0 or self.path != "store")


class Crossing(NamedTuple):
    """An object that another wrap than its own receives, and the time of the transfer."""

    task: str
    source: int
    target: int
    size_bytes: int
    ms: float


def way_of(
    asked: PathKind, workflow: Workflow, platform: Platform, orchestrator: Orchestrator = "wrap"
) -> Way:
    """Return the way of objects on `platform` for a plan with the path `asked` for.

    Raises ``unknown-path`` if costs of paths are known there, but not of that path.
    """
    is_direct = asked == "auto" and orchestrator == "wrap" and "direct" in platform.paths
    path: Path = "direct" if is_direct else "gateway" if asked == "auto" else asked
    if platform.paths and path not in platform.paths:
        known = " and ".join(platform.paths)
        message = f"platform {platform.name} does not say what the path {path} costs, but {known}"
        raise ChironError("unknown-path", f"{message}: calibrate where it is possible", path="path")
    cost = platform.paths.get(path, _FREE)
    return Way(path, cost, is_direct and not workflow.decided)


def as_called(platform: Platform, way: Way) -> Platform:
    """Return `platform` with the T_RPC of calls that take `way`.

    T_RPC was measured between wraps, if they can connect. A store carries objects but no calls.
    """
    direct = platform.paths.get("direct")
    if way.path != "gateway" or direct is None:
        return platform
    rpc_ms = platform.rpc_ms + 2 * (way.cost.ms - direct.ms)
    return platform.model_copy(update={"rpc_ms": max(0.0, rpc_ms)})


def with_bodies(platform: Platform, workflow: Workflow, sizes: Sizes) -> Platform:
    """Return `platform` with requests that include their body and answer, joined by the home."""
    answer_mb = sum(sizes.given[task] for task in names_in(workflow.output)) / 1e6
    request_ms = platform.request_ms
    request_ms += (sizes.request / 1e6 + answer_mb) * platform.body_ms_per_mb
    if isinstance(workflow.output, tuple):
        request_ms += answer_mb * platform.joined_ms_per_mb
    return platform.model_copy(update={"request_ms": request_ms})


class Sizes:
    """The sizes of a workflow's objects, in bytes: profiled medians."""

    def __init__(self, workflow: Workflow, profile: Profile) -> None:
        functions = profile.functions
        self.given = {t.name: functions[t.function].output_bytes for t in workflow.tasks}
        #: The total input of each task.
        self.taken = {t.name: functions[t.function].input_bytes or 0 for t in workflow.tasks}
        first = (t.name for t in workflow.tasks if t.source is None)
        self.request = max(map(self.taken.__getitem__, first), default=0)


def crossings(
    plan: Plan, workflow: Workflow, profile: Profile, platform: Platform
) -> Iterator[Crossing]:
    """Yield the objects that go to other wraps, task by task, but not a static workflow's request.

    By way of the home, an object goes twice if neither wrap is the home; a store's cost is put and
    get in one. If the workflow decides at run time, the home gets all outputs and sends all inputs.
    """
    way = way_of(plan.path, workflow, platform, plan.orchestrator)
    sizes, wrap_of = Sizes(workflow, profile), _wraps(plan)

    def crossing(task: str, source: int, target: int, size_bytes: int, times: int = 1) -> Crossing:
        cost_ms = way.cost.ms + size_bytes / 1e6 * way.cost.ms_per_mb
        return Crossing(task, source, target, size_bytes, times * cost_ms)

    home = 0 if plan.orchestrator == "wrap" else None
    if workflow.decided and home is not None:
        for task, wrap in wrap_of.items():
            if wrap != home:
                yield crossing(task, home, wrap, sizes.taken[task])
                yield crossing(task, wrap, home, sizes.given[task])
        return
    targets = takers(plan, workflow)
    for task, source in wrap_of.items():
        for target in targets[task]:
            via_home = not way.straight and way.path != "store" and home not in (source, target)
            yield crossing(task, source, target, sizes.given[task], 2 if via_home else 1)


def takers(plan: Plan, workflow: Workflow) -> dict[str, list[int]]:
    """Return for every task the other wraps that need its object; the home needs the answer."""
    wrap_of = _wraps(plan)
    found: dict[str, set[int]] = {task: set() for task in wrap_of}
    for task in workflow.tasks:
        for taken in taken_by(task):
            found[taken].add(wrap_of[task.name])
    if plan.orchestrator == "wrap":
        for task_name in names_in(workflow.output):
            found[task_name].add(0)
    return {task: sorted(wraps - {wrap_of[task]}) for task, wraps in found.items()}


def taken_by(task: Task) -> tuple[str, ...]:
    """Return the tasks whose objects `task` consumes: see `chiron.predictor.emissions`."""
    return replace(task, streams=tuple(each for each in task.streams if each.name)).predecessors


def _wraps(plan: Plan) -> dict[str, int]:
    return {task: number for number, wrap in enumerate(plan.wraps) for task in wrap.tasks}

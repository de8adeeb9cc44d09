"""The differences between two plans of a workflow, in lines for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from chiron.scheduler.strategies import memory_mib
from chiron.workflow.plan import Plan


@dataclass(frozen=True)
class _Place:
    """A process of a wrap, and its tasks."""

    wrap: str
    number: int
    tasks: frozenset[str]

    def __str__(self) -> str:
        process = "the main process" if self.number == 0 else f"process {self.number + 1}"
        return f"{process} of {self.wrap}"


def compare(old: Plan, new: Plan) -> tuple[str, ...]:
    """Return a line for every figure that changed, and for tasks that changed their process.

    A process of the new plan is matched with the old process with most tasks in common. So a new
    number or name alone is no move.
    """
    changed = (f"{name}: {before} -> {after}" for name, before, after in figures(old, new))
    return (*changed, *moves(old, new))


def figures(old: Plan, new: Plan) -> list[tuple[str, str, str]]:
    """Return the name, the old and the new value of every figure that changed."""
    found = {
        "workflow": (old.workflow, new.workflow),
        "planner": (old.planner, new.planner),
        "mechanism": (old.mechanisms, new.mechanisms),
        "trigger": (old.trigger, new.trigger),
        "path": (old.path, new.path),
        "attempts": (str(old.attempts), str(new.attempts)),
        "SLO": (_ms(old.slo_ms), _ms(new.slo_ms)),
        "meets the SLO": (_yes(old.meets_slo), _yes(new.meets_slo)),
        "predicted": (_predicted(old), _predicted(new)),
        "CPUs": (str(old.allocated_cpus), str(new.allocated_cpus)),
        "wraps": (str(len(old.wraps)), str(len(new.wraps))),
        "load": (_load(old), _load(new)),
        "replicas": (_replicas(old), _replicas(new)),
        "memory": (f"{memory_mib(old)} MiB", f"{memory_mib(new)} MiB"),
    }
    return [(name, *both) for name, both in found.items() if both[0] != both[1]]


def moves(old: Plan, new: Plan) -> Iterator[str]:
    """Yield a line for each group of tasks that moved from one process to another."""
    left, joined = _places(old), _places(new)
    before = {task: place for place in left for task in place.tasks}
    after = {task: place for place in joined for task in place.tasks}
    same = _matched(left, joined)
    moved: dict[tuple[_Place, _Place], list[str]] = {}
    for task, place in sorted(before.items()):
        if task not in after:
            yield f"{task}: only in the old plan"
        elif same.get(after[task]) != place:
            moved.setdefault((place, after[task]), []).append(task)
    for (of, to), tasks in moved.items():
        yield f"{', '.join(tasks)}: {of} -> {_named(to, of)}"
    for task in sorted(after.keys() - before.keys()):
        yield f"{task}: only in the new plan"


def _named(joined: _Place, left: _Place) -> str:
    """Return the tasks' new process; marked if it differs from an old one of the same number."""
    return f"{joined}, which is another now" if str(joined) == str(left) else str(joined)


def _matched(old: list[_Place], new: list[_Place]) -> dict[_Place, _Place]:
    """Return the old process of each new process, matched by most tasks in common."""
    pairs = [
        (-len(one.tasks & other.tasks), i, j)
        for i, one in enumerate(new)
        for j, other in enumerate(old)
        if one.tasks & other.tasks
    ]
    matched: dict[_Place, _Place] = {}
    for _, i, j in sorted(pairs):
        if new[i] not in matched and old[j] not in matched.values():
            matched[new[i]] = old[j]
    return matched


def _places(plan: Plan) -> list[_Place]:
    return [
        _Place(wrap.name, number, frozenset(tasks))
        for wrap in plan.wraps
        for number, tasks in enumerate(wrap.processes)
        if tasks
    ]


def _predicted(plan: Plan) -> str:
    return "-" if plan.predicted is None else f"{plan.predicted.shown} ms"


def _load(plan: Plan) -> str:
    if plan.under_load is None:
        return "-"
    each = (f"p{one.percentile:g} {one.ms:.1f} ms" for one in plan.under_load.within)
    return ", ".join([plan.under_load.load.shown, *each])


def _replicas(plan: Plan) -> str:
    """Return the replicas of each wrap; one number if they are equal."""
    counts = {wrap.replicas for wrap in plan.wraps}
    if len(counts) == 1:
        return str(*counts)
    return ", ".join(f"{wrap.name} {wrap.replicas}" for wrap in plan.wraps)


def _ms(value: float | None) -> str:
    return "-" if value is None else f"{value:g} ms"


def _yes(value: bool | None) -> str:
    return "-" if value is None else "yes" if value else "no"

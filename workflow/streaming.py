"""Live streams: streams read while they are written, so that writer and reader run concurrently."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from graphlib import CycleError, TopologicalSorter

from chiron.workflow.model import Stream, Task, Workflow, giver_of, names_in
from chiron.workflow.paths import PATHS
from chiron.workflow.plan import Plan
from chiron.wrap.core.triggers import TASK_TRIGGERS

#: The number of workflows whose live streams are cached: a search needs one workflow's repeatedly.
_REMEMBERED = 16


def live_in(plan: Plan, workflow: Workflow) -> dict[str, tuple[str, ...]]:
    """Return the live streams, if `plan` lets their tasks run concurrently."""
    connected = len(plan.wraps) == 1 or PATHS[plan.path].streams
    if plan.orchestrator == "wrap" and TASK_TRIGGERS[plan.trigger].streams and connected:
        return live_streams(workflow)
    return {}


@lru_cache(_REMEMBERED)
def live_streams(workflow: Workflow) -> dict[str, tuple[str, ...]]:
    """Map each live output to the tasks that read it while it is written.

    Either all streams that a task reads are live, or none. Tasks connected by live streams form a
    group and run concurrently. A group must not wait, even indirectly, for the end of its own
    tasks, or for a group that waits for it. A stream that would cause this is not live; tasks are
    examined from first to last.

    c reads the streams of a and b, but b begins at the end of a:

    >>> from chiron.workflow.dag import parse_dag
    >>> tasks = {"a": "f", "b": "g", "c": "h"}
    >>> edges = [["a", "b"], ["a", "c", "stream"], ["b", "c", "stream"]]
    >>> live_streams(parse_dag({"tasks": tasks, "edges": edges}, "demo"))
    {}
    >>> edges[0].append("stream")
    >>> live_streams(parse_dag({"tasks": tasks, "edges": edges}, "demo"))
    {'a': ('b', 'c'), 'b': ('c',)}
    """
    found = dict[str, list[str]]()
    together = {task: {task} for task in workflow.by_name}
    awaits = {task.name: {giver_of(each) for each in task.needs} for task in workflow.tasks}
    for name in (name for stage in workflow.stages for name in stage):
        task = workflow.by_name[name]
        outputs = [each.output for each in task.streams if each.name and each.output is not None]
        if not outputs:
            continue
        waiting = {name: {giver_of(each) for each in names_in(task.source)}}
        members = set[str]().union({name}, *(together[giver_of(each)] for each in outputs))
        joined, awaited = together | dict.fromkeys(members, members), awaits | waiting
        # A group that waits for nothing is in no cycle.
        if not any(awaited[each] for each in members) or _all_begin(joined, awaited):
            awaits, together = awaited, joined
            for each in outputs:
                found.setdefault(each, []).append(name)
    return {output: tuple(readers) for output, readers in found.items()}


def begins_with(
    workflow: Workflow, live: Mapping[str, tuple[str, ...]]
) -> dict[str, tuple[str, ...]]:
    """Return the outputs that must exist when each task begins, if streams are `live`.

    The reader of a live stream begins when the stream can be written.
    """
    found = dict[str, tuple[str, ...]]()
    for name in (name for stage in workflow.stages for name in stage):
        task = workflow.by_name[name]
        needed = [*names_in(task.source)]
        for _, output in task.streams:
            if output is not None:
                is_live = name in live.get(output, ())
                needed += found[giver_of(output)] if is_live else [output]
        found[name] = tuple(dict.fromkeys(needed))
    return found


def as_begun(workflow: Workflow) -> Workflow:
    """Return `workflow` with each task after the outputs that must exist when it begins.

    Readers of live streams are in one stage with their writers. Outputs that a task only awaits
    become streams without a name.

    >>> from chiron.workflow.dag import parse_dag
    >>> tasks = {"a": "f", "b": "g", "c": "h"}
    >>> edges = [["a", "b"], ["b", "c", "stream"]]
    >>> as_begun(parse_dag({"tasks": tasks, "edges": edges}, "demo")).stages
    (('a',), ('b', 'c'))
    """
    live = live_streams(workflow)
    begins = begins_with(workflow, live)
    tasks = (
        replace(task, streams=awaited_by(task, begins[task.name], live)) for task in workflow.tasks
    )
    return replace(workflow, tasks=tuple(tasks))


def awaited_by(
    task: Task, begins: Sequence[str], live: Mapping[str, tuple[str, ...]]
) -> tuple[Stream, ...]:
    """Return the awaited outputs outside the task's input, except the ends of live streams. Outputs
    that the task only awaits, and does not read, have no name.
    """
    read = [each for each in task.streams if task.name not in live.get(each.output or "", ())]
    known = {*names_in(task.source), *(each.output for each in read)}
    return (*read, *(Stream("", each) for each in begins if each not in known))


def _all_begin(together: Mapping[str, set[str]], awaits: Mapping[str, set[str]]) -> bool:
    """Return whether each task can begin, if the tasks `together` wait for each other's ends."""
    waits: dict[int, set[int]] = {}
    for task, needed in awaits.items():
        own = id(together[task])
        groups = {id(together[each]) for each in needed}
        if own in groups:
            return False
        waits.setdefault(own, set()).update(groups)
    try:
        TopologicalSorter(waits).prepare()
    except CycleError:
        return False
    return True

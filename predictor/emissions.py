"""Outputs that tasks emit before they end, and their streams, as tasks beside them.

References
----------
DataFlower (ASPLOS'23), §4: data is sent as soon as it exists, not when its function has ended.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from chiron.predictor.moments import AWAITED, GIVEN, Beside, Flow, Moment, given_by, stands_for
from chiron.predictor.streams import Streams
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Source, Stream, Task, Workflow, output_name
from chiron.workflow.plan import Plan
from chiron.workflow.profile import FunctionProfile, Profile
from chiron.workflow.streaming import awaited_by, begins_with

#: Returns the function that stands for a function with additional work at some moments.
Variant = Callable[[str, Sequence[Moment]], str]


class Expanded(NamedTuple):
    """A plan and its workflow with tasks for outputs and awaits, and when the awaits end."""

    plan: Plan
    workflow: Workflow
    flows: tuple[Flow, ...] = ()


def known_with(profile: Profile) -> Profile:
    """Return `profile` with the functions of emitted outputs and of awaits."""
    nothing = FunctionProfile(latency_ms=0.0, periods=())
    functions = {**profile.functions, GIVEN: nothing, AWAITED: nothing}
    for name, function in profile.functions.items():
        for output, emission in function.emits.items():
            emitted = nothing.model_copy(update={"output_bytes": emission.bytes})
            functions[given_by(name, output)] = emitted
    return profile.model_copy(update={"functions": functions})


def expanded(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    streams: Streams | None = None,
    variant: Variant = lambda function, _: function,
) -> Expanded:
    """Return a plan and workflow with tasks for emitted outputs and for streams, behind their task.

    Raises ``no-emission`` if the profile lacks the time at which a function emits an awaited
    output.
    """
    live = streams.live if streams is not None else {}
    if not workflow.emitted and not live:
        return Expanded(plan, workflow)
    begins = begins_with(workflow, live)
    tasks, flows = list[Task](), list[Flow]()
    behind = dict[str, list[str]]()
    for task in workflow.tasks:
        beside = Beside(task.name)
        known = profile.functions[task.function].emits
        for name in map(output_name, workflow.emitted.get(task.name, ())):
            if name not in known:
                message = f"the profile does not say when {task.function} emits {name}"
                raise ChironError("no-emission", f"{message}: profile again", path="functions")
        for name, emission in known.items():
            beside.give(name, emission.after, given_by(task.function, name))
        if streams is not None:
            streams.add_to(beside)
        functions = {task.name: variant(task.function, beside.moments)} | beside.functions
        awaited = tuple(
            Stream(name, None if output is None else stands_for(output))
            for name, output in awaited_by(task, begins[task.name], live)
        )
        tasks += [
            Task(name, function, _renamed(task.source), awaited)
            for name, function in functions.items()
        ]
        behind[task.name] = [*functions]
        flows += beside.flows
    wraps = tuple(
        wrap.model_copy(
            update={
                "processes": tuple(
                    tuple(name for task in process for name in behind[task])
                    for process in wrap.processes
                )
            }
        )
        for wrap in plan.wraps
    )
    plan = plan.model_copy(update={"wraps": wraps})
    return Expanded(plan, replace(workflow, tasks=tuple(tasks)), tuple(flows))


def _renamed(source: Source) -> Source:
    if isinstance(source, tuple):
        return tuple(map(stands_for, source))
    return stands_for(source) if source else source

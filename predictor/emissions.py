"""Outputs that tasks emit before their ends: each as a task beside the one that emits it.

Nothing runs such a task. It begins with the one beside it, which ends it when it emits the output,
and whatever awaits the output waits for it.

References
----------
DataFlower (ASPLOS'23), §4: data goes on as soon as it is there, not when its function has ended.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from predictor.simulator import Work, WorkKind
from workflow.errors import ChironError
from workflow.model import Source, Stream, Task, Workflow, giver_of, output_name
from workflow.plan import Plan
from workflow.profile import FunctionProfile, Profile

#: Between what emits an output and that. No function has a space in its name.
_EMITS = " emits "
#: What stands for an output does when it runs.
OUTPUT: Work = (("emitted", 0.0),)


def emitting(function: str) -> str:
    """What stands for a function where what it emits is awaited."""
    return f"{function} emitting"


def known_with(profile: Profile) -> Profile:
    """`profile` with what stands for functions that emit, and for what they emit."""
    functions = dict(profile.functions)
    for name, function in profile.functions.items():
        if function.emits:
            functions[emitting(name)] = function
        for output, emission in function.emits.items():
            functions[_beside(name, output)] = FunctionProfile(
                latency_ms=0.0, periods=(), output_bytes=emission.bytes
            )
    return profile.model_copy(update={"functions": functions})


def outputs_of(name: str, function: FunctionProfile) -> list[str]:
    """What stands for the outputs of a function of that name."""
    return [_beside(name, output) for output in function.emits]


def givers(functions: Sequence[str]) -> list[int]:
    """For each task of a process the place of what runs it, by their functions."""
    places = list[int]()
    for place, function in enumerate(functions):
        places.append(places[-1] if _EMITS in function else place)
    return places


def expanded(plan: Plan, workflow: Workflow, profile: Profile) -> tuple[Plan, Workflow]:
    """A plan and its workflow with a task for each output that one emits, right behind that one.

    Raises ``no-emission`` where the profile does not say when a function emits what is awaited.
    """
    if not workflow.emitted:
        return plan, workflow
    tasks = list[Task]()
    behind = dict[str, list[str]]()
    for task in workflow.tasks:
        known = profile.functions[task.function].emits
        for name in map(output_name, workflow.emitted.get(task.name, ())):
            if name not in known:
                message = f"the profile does not say when {task.function} emits {name}"
                raise ChironError("no-emission", f"{message}: profile again", path="functions")
        source = _renamed(task.source)
        streams = tuple(
            Stream(name, None if output is None else _of(output)) for name, output in task.streams
        )
        function = emitting(task.function) if known else task.function
        tasks.append(Task(task.name, function, source, streams))
        tasks += [
            Task(_beside(task.name, n), _beside(task.function, n), source, streams) for n in known
        ]
        behind[task.name] = [task.name, *(_beside(task.name, name) for name in known)]
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
    return plan.model_copy(update={"wraps": wraps}), replace(workflow, tasks=tuple(tasks))


def emitting_work(function: FunctionProfile, parts: Sequence[Work]) -> Work:
    """What a function does that emits its outputs meanwhile; the k-th is that of the k-th task
    behind it.

    Parameters
    ----------
    parts
        What it does in each of its periods: one part of that kind, and its helpers.
    """
    moments = sorted(
        (emission.after * function.latency_ms, number)
        for number, emission in enumerate(function.emits.values(), start=1)
    )
    return (*_interrupted(function, parts, moments), *(("emit", number) for _, number in moments))


def _interrupted(
    function: FunctionProfile, parts: Sequence[Work], moments: list[tuple[float, int]]
) -> Iterator[tuple[WorkKind, float]]:
    """The parts, up to the moments that are within them; those are taken out."""
    for period, work in zip(function.periods, parts, strict=True):
        for kind, ms in work:
            done = 0.0
            while kind == period.kind and moments and period.duration_ms:
                share = (moments[0][0] - period.start_ms) / period.duration_ms
                if share >= 1.0:
                    break
                yield kind, max(0.0, share - done) * ms
                yield "emit", moments.pop(0)[1]
                done = max(done, share)
            yield kind, (1.0 - done) * ms


def _renamed(source: Source) -> Source:
    if isinstance(source, tuple):
        return tuple(map(_of, source))
    return _of(source) if source else source


def _of(output: str) -> str:
    task = giver_of(output)
    return output if task == output else _beside(task, output_name(output))


def _beside(name: str, output: str) -> str:
    return f"{name}{_EMITS}{output}"

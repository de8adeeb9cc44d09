"""What a wrap's handler.py declares, derived from the plan and the workflow.

Task names are free text, so they are numbers here: in the order of the workflow's definition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from types import MappingProxyType
from typing import Any

from chiron.workflow.model import NOTHING, Source, Task, Workflow, giver_of, names_in, output_name
from chiron.workflow.plan import PathKind, Plan, Wrap
from chiron.workflow.reference import HandlerStyle
from chiron.workflow.streaming import begins_with, live_in
from chiron.workflow.triggers import Bucket, buckets

#: A source with numbers for names: the runtime's form.
NumberedSource = int | list[int] | None


@dataclass(frozen=True)
class EntryDeclaration:
    """The fields of the runtime's ``Entry``, in its order."""

    output: NumberedSource
    fail: tuple[str, str] | None
    machine: dict[str, Any] | None = None
    states: dict[str, int] = field(default_factory=dict)
    in_stages: bool = False
    emits: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, Any] | None = None
    styles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WrapDeclaration:
    """The fields of the runtime's ``Wrap``, in its order."""

    workflow: str
    name: str
    mechanism: str
    functions: dict[str, HandlerStyle]
    tasks: dict[int, str]
    processes: list[list[int]]
    inputs: dict[int, NumberedSource]
    buckets: list[tuple[list[int], list[int]]]
    timeout_s: float
    entry: EntryDeclaration | None
    timeouts_s: dict[str, float] = field(default_factory=dict)
    instances: int = 0
    remotes: dict[str, dict[int, str]] = field(default_factory=dict)
    path: PathKind = "auto"
    attempts: int = 1
    commands: dict[str, list[str]] = field(default_factory=dict)
    emits: dict[int, tuple[int, str]] = field(default_factory=dict)
    streams: dict[int, dict[str, int]] = field(default_factory=dict)
    live: dict[int, list[int]] = field(default_factory=dict)
    passing: list[int] = field(default_factory=list)
    live_buckets: list[tuple[list[int], list[int]]] = field(default_factory=list)
    task_names: dict[int, str] = field(default_factory=dict)
    answers: int | None = None


def task_numbers(workflow: Workflow) -> dict[str, int]:
    """The number of every task, and of every output that one emits."""
    emitted = chain.from_iterable(workflow.emitted.values())
    return {name: number for number, name in enumerate((*workflow.by_name, *emitted))}


def numbered(source: Source, numbers: Mapping[str, int]) -> NumberedSource:
    """`source` in the runtime's form, in which nothing is an empty list."""
    if source is None:
        return None
    if source == NOTHING:
        return []
    return numbers[source] if isinstance(source, str) else [numbers[name] for name in source]


def declare(
    plan: Plan,
    index: int,
    workflow: Workflow,
    styles: Mapping[str, HandlerStyle],
    timeout_s: float,
    timeouts_s: Mapping[str, float] = MappingProxyType({}),
    commands: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> WrapDeclaration:
    """The declaration of the wrap at `index` of `plan`.

    The first wrap of a plan is its entry. Where the client calls every wrap, each is the entry
    of its own task: request in, output out.

    Parameters
    ----------
    timeout_s
        Seconds that a request may take.
    timeouts_s
        Function -> seconds that it may take, for those that have a limit of their own.
    commands
        Function -> program and arguments, for those of the style ``command``.
    """
    wrap = plan.wraps[index]
    numbers = task_numbers(workflow)
    functions = functions_in(wrap, workflow)
    tasks = sorted(_given_by(wrap.tasks, workflow), key=numbers.__getitem__)
    by_client = plan.orchestrator == "client"
    deciding = workflow.machine is not None and not by_client
    entry, remotes = None, dict[str, dict[int, str]]()
    known = set(tasks) if by_client else set(numbers)
    sources = {name: numbered(_task_of(name, workflow).source, numbers) for name in numbers}
    emits = {
        numbers[name]: (numbers[task], output_name(name))
        for task in (wrap.tasks if by_client else workflow.by_name)
        for name in workflow.emitted.get(task, ())
    }
    if workflow.buckets is not None:
        sources = dict.fromkeys(numbers)  # each runs by itself, on what has fired
    if by_client:
        outputs = {name: number for number, (_, name) in emits.items()}
        entry = EntryDeclaration(
            output=numbers[wrap.tasks[0]],
            fail=None,
            emits=outputs,
            styles=[styles[workflow.function_of(wrap.tasks[0])]],
        )
        sources = dict.fromkeys(tasks)
    elif index == 0:
        entry = _entry(plan, workflow, numbers, styles)
    if not by_client and (entry or not deciding):
        remotes = {
            each.name: {
                numbers[name]: _task_of(name, workflow).function
                for name in _given_by(each.tasks, workflow)
            }
            for each in plan.wraps
            if each.name != wrap.name
        }
    waiting = [] if deciding else buckets_of(plan, workflow)
    live = live_in(plan, workflow)
    kept = {*names_in(workflow.output)}
    for task in workflow.tasks:
        kept |= {*task.needs} - {each for each, readers in live.items() if task.name in readers}
    return WrapDeclaration(
        workflow=workflow.name,
        name=wrap.name,
        mechanism=wrap.mechanism,
        functions={name: styles[name] for name in functions},
        tasks={numbers[name]: _task_of(name, workflow).function for name in tasks},
        processes=[
            [numbers[name] for name in _given_by(process, workflow)] for process in wrap.processes
        ],
        inputs={} if deciding else {numbers[t]: source for t, source in sources.items()},
        buckets=_numbered_buckets(waiting, known, numbers),
        timeout_s=timeout_s,
        entry=entry,
        timeouts_s={name: timeouts_s[name] for name in functions if name in timeouts_s},
        instances=len(workflow.tasks) if deciding else 0,
        remotes=remotes,
        path=plan.path,
        attempts=plan.attempts,
        commands={name: list(commands[name]) for name in functions if name in commands},
        emits=emits,
        streams={
            numbers[task]: {
                name: -place if by_client or output is None else numbers[output]
                for place, (name, output) in enumerate(workflow.by_name[task].streams, start=1)
            }
            for task in workflow.by_name
            if task in known and workflow.by_name[task].streams
        },
        live={numbers[output]: [numbers[t] for t in readers] for output, readers in live.items()},
        passing=[numbers[output] for output in live if output not in kept],
        live_buckets=_numbered_buckets(buckets_of(plan, workflow, live), known, numbers)
        if live
        else [],
        task_names={
            numbers[task.name]: task.name
            for task in workflow.tasks
            if entry and task.name in known and task.name != task.function
        },
        answers=numbers[workflow.answers] if workflow.answers else None,
    )


def _numbered_buckets(
    found: Iterable[Bucket[str]], known: Collection[str], numbers: Mapping[str, int]
) -> list[tuple[list[int], list[int]]]:
    return [
        ([numbers[t] for t in awaits if t in known], [numbers[t] for t in starts if t in known])
        for awaits, starts in found
        if any(task in known for task in starts)
    ]


def buckets_of(
    plan: Plan, workflow: Workflow, live: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> list[Bucket[str]]:
    """What the tasks of a workflow wait for, with the plan's trigger, where streams are `live`.

    An output that a task emits is one more task to the runtime: it starts with the one that emits
    it, and ends earlier.
    """
    if workflow.buckets is not None:
        return [Bucket((), tuple(workflow.by_name))]
    begins = begins_with(workflow, live)
    needs = {
        name: begins[task] for task in workflow.by_name for name in _given_by([task], workflow)
    }
    stages = [_given_by(stage, workflow) for stage in workflow.stages]
    return buckets(needs, stages, plan.trigger)


def _given_by(tasks: Iterable[str], workflow: Workflow) -> list[str]:
    """The tasks, each before the outputs that it emits."""
    return [name for task in tasks for name in (task, *workflow.emitted.get(task, ()))]


def _task_of(name: str, workflow: Workflow) -> Task:
    """The task of that name, or that emits the output of that name."""
    return workflow.by_name[giver_of(name)]


def functions_in(wrap: Wrap, workflow: Workflow) -> list[str]:
    """The functions whose code a wrap needs, each once."""
    return sorted({workflow.function_of(task) for task in wrap.tasks})


def _entry(
    plan: Plan,
    workflow: Workflow,
    numbers: Mapping[str, int],
    styles: Mapping[str, HandlerStyle],
) -> EntryDeclaration:
    failure = workflow.failure
    deciding = workflow.machine is not None
    return EntryDeclaration(
        output=numbered(workflow.output, numbers),
        fail=(failure.error, failure.cause) if failure else None,
        machine=workflow.machine,
        states=dict(numbers) if deciding or workflow.buckets is not None else {},
        in_stages=deciding and plan.trigger == "stage",
        buckets=workflow.buckets,
        styles=sorted({styles[task.function] for task in workflow.first}),
    )

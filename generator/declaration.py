"""The declaration in a wrap's handler.py, derived from the plan and the workflow.

Task names are free text, so tasks have numbers here: in the order of the workflow's definition.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from types import MappingProxyType

from chiron.workflow.model import NOTHING, Source, Task, Workflow, giver_of, names_in, output_name
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.streaming import begins_with, live_in
from chiron.wrap.core.declaration import EntryDeclaration, NumberedSource, WrapDeclaration
from chiron.wrap.core.triggers import TASK_TRIGGERS, Bucket, buckets


def task_numbers(workflow: Workflow) -> dict[str, int]:
    """Return the number of every task and of every emitted output."""
    emitted = chain.from_iterable(workflow.emitted.values())
    return {name: number for number, name in enumerate((*workflow.by_name, *emitted))}


def numbered(source: Source, numbers: Mapping[str, int]) -> NumberedSource:
    """Return `source` in the runtime's form, in which an empty list means no input."""
    if source is None:
        return None
    if source == NOTHING:
        return []
    return numbers[source] if isinstance(source, str) else [numbers[name] for name in source]


def declare(
    plan: Plan,
    index: int,
    workflow: Workflow,
    styles: Mapping[str, str],
    timeout_s: float,
    timeouts_s: Mapping[str, float] = MappingProxyType({}),
    commands: Mapping[str, Sequence[str]] = MappingProxyType({}),
) -> WrapDeclaration:
    """Return the declaration of the wrap at `index` of `plan`.

    The first wrap of a plan is its entry. If the client calls every wrap, each wrap is the entry of
    its own task: request in, output out.

    Args:
        timeout_s: the timeout of a request, in seconds.
        timeouts_s: the limits in seconds of functions with their own limit.
        commands: program and arguments of functions of the style ``command``.
    """
    part = _Part(plan, index, workflow)
    functions, numbers = functions_in(part.wrap, workflow), part.numbers
    live = live_in(plan, workflow)
    return WrapDeclaration(
        workflow=workflow.name,
        name=part.wrap.name,
        mechanism=part.wrap.mechanism,
        functions={name: styles[name] for name in functions},
        tasks=part.functions_of(part.wrap.tasks),
        processes=[
            [numbers[name] for name in _given_by(process, workflow)]
            for process in part.wrap.processes
        ],
        inputs=part.inputs(),
        buckets=part.numbered_buckets([] if part.decided else buckets_of(plan, workflow)),
        timeout_s=timeout_s,
        entry=part.entry(styles),
        timeouts_s={name: timeouts_s[name] for name in functions if name in timeouts_s},
        instances=len(workflow.tasks) if part.decided else 0,
        remotes=part.remotes(),
        path=plan.path,
        attempts=1 if workflow.buckets else plan.attempts,  # buckets count their own
        commands={name: list(commands[name]) for name in functions if name in commands},
        emits=part.emits(),
        streams=part.streams(),
        live={numbers[output]: [numbers[t] for t in readers] for output, readers in live.items()},
        passing=part.passing(live),
        live_buckets=part.numbered_buckets(buckets_of(plan, workflow, live) if live else []),
        task_names=part.task_names(),
        answers=numbers[workflow.answers] if workflow.answers else None,
    )


@dataclass(frozen=True)
class _Part:
    """The wrap at `index` of `plan`, and its part of the workflow, with tasks as numbers."""

    plan: Plan
    index: int
    workflow: Workflow

    @cached_property
    def wrap(self) -> Wrap:
        return self.plan.wraps[self.index]

    @cached_property
    def numbers(self) -> dict[str, int]:
        return task_numbers(self.workflow)

    @cached_property
    def by_client(self) -> bool:
        """Whether the client calls every wrap, as the entry of its only task."""
        return self.plan.orchestrator == "client"

    @cached_property
    def decided(self) -> bool:
        """Whether a state machine in the entry determines which tasks run."""
        return self.workflow.machine is not None and not self.by_client

    @cached_property
    def known(self) -> Collection[str]:
        """The tasks and outputs that the wrap refers to."""
        return {*_given_by(self.wrap.tasks, self.workflow)} if self.by_client else self.numbers

    def functions_of(self, tasks: Iterable[str]) -> dict[int, str]:
        """Return the functions of `tasks`, and of their emitted outputs, by number."""
        given = sorted(_given_by(tasks, self.workflow), key=self.numbers.__getitem__)
        return {self.numbers[name]: _task_of(name, self.workflow).function for name in given}

    def inputs(self) -> dict[int, NumberedSource]:
        """Return the source of each task; None if it is the request, or comes with the firing."""
        if self.decided:
            return {}
        numbers, workflow = self.numbers, self.workflow
        if self.by_client or workflow.buckets is not None:
            return dict.fromkeys(numbers[name] for name in numbers if name in self.known)
        return {
            number: numbered(_task_of(name, workflow).source, numbers)
            for name, number in numbers.items()
        }

    def emits(self) -> dict[int, tuple[int, str]]:
        """Map each emitted output to its task and its name there."""
        return {
            self.numbers[name]: (self.numbers[task], output_name(name))
            for task in (self.wrap.tasks if self.by_client else self.workflow.by_name)
            for name in self.workflow.emitted.get(task, ())
        }

    def entry(self, styles: Mapping[str, str]) -> EntryDeclaration | None:
        """Return the declaration for clients' requests; None if the wrap accepts none."""
        if not self.by_client:
            return None if self.index else _entry(self.plan, self.workflow, self.numbers, styles)
        (task, *_) = self.wrap.tasks
        return EntryDeclaration(
            output=self.numbers[task],
            fail=None,
            emits={name: number for number, (_, name) in self.emits().items()},
            styles=[styles[self.workflow.function_of(task)]],
        )

    def remotes(self) -> dict[str, dict[int, str]]:
        """Return the other wraps that it may call, each with its tasks and their functions."""
        if self.by_client or (self.decided and self.index):
            return {}
        others = (wrap for wrap in self.plan.wraps if wrap.name != self.wrap.name)
        return {wrap.name: self.functions_of(wrap.tasks) for wrap in others}

    def streams(self) -> dict[int, dict[str, int]]:
        """Map each task's stream names to outputs, or to negative positions in the request."""
        return {
            self.numbers[task.name]: {
                name: -place if self.by_client or output is None else self.numbers[output]
                for place, (name, output) in enumerate(task.streams, start=1)
            }
            for task in self.workflow.tasks
            if task.name in self.known and task.streams
        }

    def passing(self, live: Mapping[str, tuple[str, ...]]) -> list[int]:
        """Return the `live` outputs that no task needs whole."""
        kept = {*names_in(self.workflow.output)}
        for task in self.workflow.tasks:
            kept |= {name for name in task.needs if task.name not in live.get(name, ())}
        return [self.numbers[output] for output in live if output not in kept]

    def numbered_buckets(self, found: Iterable[Bucket[str]]) -> list[tuple[list[int], list[int]]]:
        """Return those of the buckets `found` that start tasks of this wrap, with numbers."""
        numbers, known = self.numbers, self.known
        return [
            ([numbers[t] for t in awaits if t in known], [numbers[t] for t in starts if t in known])
            for awaits, starts in found
            if any(task in known for task in starts)
        ]

    def task_names(self) -> dict[int, str]:
        """Return the entry's task names that differ from their functions' names."""
        return {
            self.numbers[task.name]: task.name
            for task in self.workflow.tasks
            if task.name in self.known and task.name != task.function
            if self.by_client or not self.index
        }


def buckets_of(
    plan: Plan, workflow: Workflow, live: Mapping[str, tuple[str, ...]] = MappingProxyType({})
) -> list[Bucket[str]]:
    """Return the buckets that start the tasks with the plan's trigger, if streams are `live`.

    The runtime treats an emitted output as one more task: it starts with the task that emits it,
    and ends earlier.
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
    """Return the tasks, each before the outputs that it emits."""
    return [name for task in tasks for name in (task, *workflow.emitted.get(task, ()))]


def _task_of(name: str, workflow: Workflow) -> Task:
    """Return the task with this name, or that emits the output with this name."""
    return workflow.by_name[giver_of(name)]


def functions_in(wrap: Wrap, workflow: Workflow) -> list[str]:
    """Return the distinct functions whose code a wrap needs."""
    return sorted({workflow.function_of(task) for task in wrap.tasks})


def _entry(
    plan: Plan, workflow: Workflow, numbers: Mapping[str, int], styles: Mapping[str, str]
) -> EntryDeclaration:
    failure = workflow.failure
    deciding = workflow.machine is not None
    return EntryDeclaration(
        output=numbered(workflow.output, numbers),
        fail=(failure.error, failure.cause) if failure else None,
        machine=workflow.machine,
        states=dict(numbers) if deciding or workflow.buckets is not None else {},
        in_stages=deciding and TASK_TRIGGERS[plan.trigger].in_stages,
        buckets=workflow.buckets,
        styles=sorted({styles[task.function] for task in workflow.first}),
    )

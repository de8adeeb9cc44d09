"""A workflow: tasks, the source of each task's input, and the stages in which they run."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from typing import Any, NamedTuple

from chiron.workflow.errors import ChironError
from chiron.wrap.core.buckets.routes import ALL

#: The source of data. None is the workflow's request, TASK is that task's output, and TASK#OUTPUT
#: is an output that the task emits. A tuple is the JSON list of these outputs in this order.
Source = None | str | tuple[str, ...]
#: The source of a task that gets all its data as streams: an empty input.
NOTHING = ""
#: The name of a function's answer among its outputs.
ANSWER = "output"


class Stream(NamedTuple):
    """The `name` by which a task's handler opens `output` as a stream; None is the request."""

    name: str
    output: str | None


@dataclass(frozen=True)
class Task:
    """One use of a function in a workflow."""

    name: str
    function: str
    source: Source
    streams: tuple[Stream, ...] = ()

    @property
    def needs(self) -> tuple[str, ...]:
        """The outputs that this task needs."""
        streams = (each.output for each in self.streams if each.output is not None)
        return (*names_in(self.source), *streams)

    @property
    def predecessors(self) -> tuple[str, ...]:
        """The tasks whose outputs this task needs."""
        return tuple(dict.fromkeys(map(giver_of, self.needs)))


@dataclass(frozen=True)
class Failure:
    """The Fail state that a workflow ends in."""

    error: str
    cause: str


@dataclass(frozen=True)
class Workflow:
    """A DAG of tasks with distinct names; ``output`` is the source of the workflow's answer.

    A workflow that decides at run time has a ``machine``: a state machine in States Language, as
    `chiron.workflow.asl` reads it. The machine determines when tasks run and which input they get.
    Such a workflow has no output, and its tasks have no sources. If ``decided``, the workflow
    records one execution of a machine. Each task there is one run of a task, and waits for the runs
    before it, whatever data it gets.

    A workflow of buckets has their definition in ``buckets``, for `wrap.core.buckets.flow`. Its
    tasks are connected as if each bucket fired once, with the outputs of all tasks that give to it.

    ``warnings`` list the parts of the document that have no effect.

    Raises ``cycle`` if the tasks' sources form no DAG; the error names the tasks of one cycle.
    """

    name: str
    tasks: tuple[Task, ...]
    output: Source
    failure: Failure | None = None
    machine: dict[str, Any] | None = field(default=None, hash=False)
    decided: bool = False
    buckets: dict[str, Any] | None = field(default=None, hash=False)
    warnings: tuple[str, ...] = field(default=(), compare=False)

    def __post_init__(self) -> None:
        _ = self.stages

    @cached_property
    def stages(self) -> tuple[tuple[str, ...], ...]:
        """Topological generations of task names, each in the order of definition.

        A stage's tasks can run in parallel. With the trigger ``stage`` they start when all tasks of
        the previous stage have ended (Chiron §2.1).
        """
        generations = list(_generations({task.name: task.predecessors for task in self.tasks}))
        return tuple(generations)

    def stage_of(self, task: str) -> int:
        """Return the number of the stage of `task`, from 0."""
        return next(number for number, stage in enumerate(self.stages) if task in stage)

    @cached_property
    def ancestors(self) -> dict[str, frozenset[str]]:
        """The direct and indirect predecessors of every task."""
        # Tasks with equal predecessors share a set: large workflows have few distinct sets.
        known: dict[tuple[str, ...], frozenset[str]] = {}
        found: dict[str, frozenset[str]] = {}
        for task in chain.from_iterable(self.stages):
            needed = self.by_name[task].predecessors
            if needed not in known:
                known[needed] = frozenset(needed).union(*(found[each] for each in needed))
            found[task] = known[needed]
        return found

    @cached_property
    def ended_before(self) -> dict[str, frozenset[str]]:
        """The `ancestors` of every task that have surely ended when it begins."""
        if not self.emitted:
            return self.ancestors
        found: dict[str, frozenset[str]] = {}
        for task in chain.from_iterable(self.stages):
            needed = [(giver_of(output), output) for output in self.by_name[task].needs]
            ended = (giver for giver, output in needed if giver == output)
            found[task] = frozenset(ended).union(*(found[giver] for giver, _ in needed))
        return found

    @cached_property
    def by_name(self) -> dict[str, Task]:
        return {task.name: task for task in self.tasks}

    @cached_property
    def emitted(self) -> dict[str, tuple[str, ...]]:
        """The outputs that other tasks need, as TASK#OUTPUT, by the task that emits them."""
        sources = chain(*(task.needs for task in self.tasks), names_in(self.output))
        found: dict[str, dict[str, None]] = {}
        for name in sources:
            if (task := giver_of(name)) != name:
                found.setdefault(task, {})[name] = None
        return {task: tuple(names) for task, names in found.items()}

    @property
    def first(self) -> tuple[Task, ...]:
        """The tasks whose input is the request; empty for a state machine and for buckets."""
        if self.machine is not None or self.buckets is not None:
            return ()
        return tuple(task for task in self.tasks if task.source is None)

    @property
    def answers(self) -> str | None:
        """The task whose HTTP answer is the workflow's answer; None if no single task always is.

        An error status of that task is then passed on like any other status.
        """
        output = self.output
        if self.machine is not None or self.buckets is not None or self.failure is not None:
            return None
        return output if isinstance(output, str) and output in self.by_name else None

    @cached_property
    def streaming(self) -> frozenset[str]:
        """The functions that read streams."""
        return frozenset(task.function for task in self.tasks if task.streams)

    @cached_property
    def functions(self) -> tuple[str, ...]:
        """The distinct functions of the tasks, in the order of first use."""
        return tuple(dict.fromkeys(task.function for task in self.tasks))

    def first_using(self, function: str) -> Task:
        return next(task for task in self.tasks if task.function == function)

    @cached_property
    def emits(self) -> dict[str, tuple[str, ...]]:
        """The names of the emitted outputs that other tasks need, by function.

        With buckets, any function may emit: the name ``ALL`` of `chiron.wrap.core.buckets.routes`
        stands for everything that it emits.
        """
        if self.buckets is not None:
            gives = (task for task, buckets in self.buckets["gives"].items() if buckets)
            return {self.function_of(task): (ALL,) for task in gives}
        found: dict[str, dict[str, None]] = {}
        for task, outputs in self.emitted.items():
            names = found.setdefault(self.function_of(task), {})
            names.update(dict.fromkeys(map(output_name, outputs)))
        return {function: tuple(names) for function, names in found.items()}

    def function_of(self, task: str) -> str:
        return self.by_name[task].function


def names_in(source: Source) -> tuple[str, ...]:
    """Return the outputs to which `source` refers."""
    if source is None or source == NOTHING:
        return ()
    return (source,) if isinstance(source, str) else source


def source_of(names: Iterable[str]) -> Source:
    """Return the source that combines `names`: the request if there is none."""
    found = tuple(names)
    return found if len(found) > 1 else next(iter(found), None)


def giver_of(output: str) -> str:
    """Return the task that produces an output; its answer has the task's own name.

    >>> giver_of("split"), giver_of("split#left"), giver_of("Pack#2")
    ('split', 'split', 'Pack#2')
    """
    task, mark, name = output.rpartition("#")
    return task if mark and not name.isdecimal() else output


def output_name(output: str) -> str:
    """Return the name by which a task emits `output`."""
    return output.rpartition("#")[2]


def _generations(predecessors: dict[str, tuple[str, ...]]) -> Iterator[tuple[str, ...]]:
    import networkx as nx  # loaded on use: it costs more than all other imports of a command

    graph: nx.DiGraph = nx.DiGraph()
    graph.add_nodes_from(predecessors)
    graph.add_edges_from((before, task) for task, ps in predecessors.items() for before in ps)
    try:
        order = {task: index for index, task in enumerate(predecessors)}
        for generation in nx.topological_generations(graph):
            yield tuple(sorted(generation, key=order.__getitem__))
    except nx.NetworkXUnfeasible:
        cycle = [edge[0] for edge in nx.find_cycle(graph)]
        raise ChironError(
            "cycle",
            f"tasks form a cycle: {' -> '.join([*cycle, cycle[0]])}: remove one of these edges",
            functions=cycle,
        ) from None

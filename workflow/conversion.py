"""Convert workflows: a plain DAG to States Language, and vice versa."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain, count
from typing import Any

from chiron.workflow.asl_shapes import states_in
from chiron.workflow.dag import STREAM, parse_dag
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Source, Workflow, names_in
from chiron.workflow.names import STATE_NAME_LIMIT, AsWritten, check_task_name, shown


def as_plain(workflow: Workflow) -> dict[str, Any]:
    """Return the document of the plain DAG equal to `workflow`.

    Raises ``not-plain`` for a machine that decides, buckets, a Fail at the end, and lists of one
    answer, as a Parallel of one branch makes them.
    """
    _refuse_buckets(workflow, "not-plain")
    if workflow.machine is not None:
        kinds = ("Choice", "Map", "Wait")
        states = states_in(workflow.machine)
        deciding = {name: state["Type"] for name, state in states if state["Type"] in kinds}
        named = [f"{kind} {shown(name)}" for name, kind in deciding.items()]
        what = f"state machine ({', '.join(named[:6])})" if named else "state machine"
        raise ChironError(
            "not-plain",
            f"a {what} decides or changes data while it runs, and a plain DAG does not: keep it as "
            "States Language",
            functions=[*deciding],
        )
    if workflow.failure is not None:
        message = f"the workflow ends in Fail {shown(workflow.failure.error)}, and a plain DAG "
        raise ChironError("not-plain", f"{message}answers: take the Fail out")
    document = {
        "tasks": {task.name: task.function for task in workflow.tasks},
        "edges": [
            *([given, task.name] for task in workflow.tasks for given in names_in(task.source)),
            *([given, task.name, STREAM] for task in workflow.tasks for _, given in task.streams),
        ],
    }
    again = parse_dag(document, workflow.name, AsWritten())
    if workflow.output in names_in(again.output) and workflow.output != again.output:
        document["http"] = {"answer": workflow.output}
        again = parse_dag(document, workflow.name, AsWritten())
    for name in workflow.by_name:
        if again.by_name[name].source != workflow.by_name[name].source:
            raise _list_of_one(f"task {shown(name)} takes", name)
    if again.output != workflow.output:
        raise _list_of_one("the workflow answers", *names_in(workflow.output))
    return document


def _refuse_buckets(workflow: Workflow, code: str) -> None:
    if workflow.buckets is not None:
        message = "buckets outlive requests, and that no other form can say: keep it as it is"
        raise ChironError(code, message, path="buckets")


def _list_of_one(what: str, *tasks: str) -> ChironError:
    return ChironError(
        "not-plain",
        f"{what} other data than in a plain DAG: a list of one, or what another task takes alone. "
        "Take the Parallel out",
        functions=tasks,
    )


def as_states(workflow: Workflow) -> dict[str, Any]:
    """Return the state machine equal to the DAG `workflow`: its tasks get the same data, as early.

    Raises ``not-series-parallel`` unless its tasks are chains and parallel branches of chains;
    ``not-states`` for buckets.
    """
    _refuse_buckets(workflow, "not-states")
    if workflow.streaming:
        message = "a state gets what others have given, and no streams: keep it as a plain DAG"
        raise ChironError("unsupported-field", message, path="edges", functions=workflow.streaming)
    if workflow.emitted:
        raise ChironError(
            "unsupported-field",
            "a state gives what its function answers, and "
            f"{', '.join(chain.from_iterable(workflow.emitted.values()))} is emitted before: keep "
            "it as a plain DAG",
            path="edges",
            functions=[*workflow.emitted],
        )
    needed = {task for each in workflow.tasks for task in each.predecessors}
    last = [name for name in workflow.by_name if name not in needed]
    if isinstance(workflow.output, str) and len(last) > 1:
        what = f"{shown(workflow.output)} answers alone, beside the other last tasks, and no state "
        message = f"{what}machine ends so: keep it as a plain DAG"
        raise ChironError("unsupported-field", message, path="http", functions=last)
    for task in workflow.tasks:
        check_task_name(task.name, f"tasks.{task.name}", STATE_NAME_LIMIT)
    unused = (n for n in map("Parallel {}".format, count(1)) if n not in workflow.by_name)
    return _scope(_Series(workflow).whole(), workflow, unused)


#: Consecutive tasks and parallel branches.
_Chain = list["str | list[_Branch]"]


@dataclass
class _Branch:
    """A chain, and the task whose answer is the chain's output."""

    chain: _Chain
    end: str


class _Series:
    def __init__(self, workflow: Workflow) -> None:
        self._workflow = workflow
        self._takers: dict[Source, list[str]] = {}
        for task in workflow.tasks:
            self._takers.setdefault(task.source, []).append(task.name)
        #: The lists that tasks, or the workflow, use as source, by each task in them.
        self._joins: dict[str, list[tuple[str, ...]]] = {}
        for source in (*self._takers, workflow.output):
            if isinstance(source, tuple) and len(source) > 1:
                for name in source:
                    if source not in self._joins.setdefault(name, []):
                        self._joins[name].append(source)

    def whole(self) -> _Chain:
        """Return all tasks as one chain."""
        chain, end = self._from(None)
        if end != self._workflow.output:
            raise _crossing([*names_in(end), *names_in(self._workflow.output)])
        return chain

    def _from(self, source: Source) -> tuple[_Chain, Source]:
        """Return the chain that follows `source`, and the source with which it ends."""
        chain: _Chain = []
        while takers := self._takers.get(source):
            if isinstance(source, str) and (joins := self._joins.get(source)):
                joined = [name for join in joins for name in (*join, *self._takers.get(join, ()))]
                raise _crossing([source, *takers, *joined])
            if len(takers) == 1:
                chain.append(takers[0])
                source = takers[0]
                continue
            branches = [self._branch([name], name) for name in takers]
            branches, source = self._merged(branches)
            if len(branches) == 1:
                chain += branches[0].chain
            else:
                chain.append(branches)
        return chain, source

    def _branch(self, start: _Chain, source: Source) -> _Branch:
        more, end = self._from(source)
        if not isinstance(end, str):
            raise _crossing(names_in(end))
        return _Branch(start + more, end)

    def _merged(self, branches: list[_Branch]) -> tuple[list[_Branch], Source]:
        """Join branches until all end in one list; return the branches and the list."""
        while True:
            ends = {branch.end: branch for branch in branches}
            lists = {each for end in ends for each in self._joins.get(end, ())}
            ready = [each for each in lists if set(each) <= set(ends)]
            if any(len(self._joins.get(end, ())) != 1 for end in ends) or not ready:
                raise _crossing([*ends, *(name for each in lists for name in each)])
            source = ready[0]
            mine = [ends[name] for name in source]
            if len(mine) == len(branches):
                return mine, source
            takers = self._takers.get(source, [])
            more, end = self._from(source)
            if not takers or not isinstance(end, str):
                raise _crossing(source)
            rest = [branch for branch in branches if branch not in mine]
            branches = [*rest, _Branch([mine, *more], end)]


def _crossing(tasks: Any) -> ChironError:
    named = list(dict.fromkeys(tasks))
    return ChironError(
        "not-series-parallel",
        f"the tasks {', '.join(shown(name) for name in named[:8])} form no series of parallel "
        "branches: a state machine would run some later than needed, or give them other lists: "
        "keep the plain DAG",
        functions=named,
    )


def _scope(chain: _Chain, workflow: Workflow, unused: Iterator[str]) -> dict[str, Any]:
    """Return the states of `chain`; its Parallel states get `unused` names."""
    named = [(step, step if isinstance(step, str) else next(unused)) for step in chain]
    states: dict[str, Any] = {}
    for index, (step, name) in enumerate(named):
        state: dict[str, Any]
        if isinstance(step, str):
            state = {"Type": "Task", "Resource": workflow.function_of(step)}
        else:
            branches = [_scope(branch.chain, workflow, unused) for branch in step]
            state = {"Type": "Parallel", "Branches": branches}
        last = index + 1 == len(named)
        states[name] = state | ({"End": True} if last else {"Next": named[index + 1][1]})
    return {"StartAt": named[0][1], "States": states}

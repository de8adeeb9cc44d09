"""The state machine of steps that decide, run once per item, or name the data that they read.

Its data is an object: the request as INPUT, and each step's answer under the step's name. A
Parallel stores the list of its branches' objects under its own name. Unless another answer is
declared, the last step's answer is the machine's answer.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.names import shown
from chiron.workflow.regions import Regions
from chiron.workflow.steps import REQUEST, Condition, Read, Step, Translated, checked

_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_OPERATORS = {
    "==": "Equals",
    "<": "LessThan",
    "<=": "LessThanEquals",
    ">": "GreaterThan",
    ">=": "GreaterThanEquals",
}


def as_machine(
    steps: Sequence[Step], name: str | None = None, answer: Mapping[str, Read] | None = None
) -> Translated:
    """Return the state machine of `steps`; `answer` is the machine's answer, by field.

    Raises all faults: ``unknown-read`` for a read of a step that has not always run by then,
    ``not-series-parallel``, and what `checked` raises.
    """
    writer = _Writer(checked(steps), answer)
    document = writer.machine()
    writer.faults.raise_all()
    return Translated(({"Name": name} if name else {}) | document, _origins(document, "", writer))


@dataclass(frozen=True)
class _Known:
    """The answers known at some point: the path of each step's answer, and of the last answer."""

    paths: dict[str, str]
    last: str | None

    def joined(self, other: _Known) -> _Known:
        """Return what is known where either predecessor may come before."""
        paths = {step: path for step, path in self.paths.items() if step in other.paths}
        return _Known(paths, self.last if self.last == other.last else None)


class _Place(dict[str, Any]):
    """A state generated from the element at `path` of the source document."""

    path: str


class _Writer:
    def __init__(self, steps: dict[str, Step], answer: Mapping[str, Read] | None) -> None:
        self.faults = Faults()
        self._steps, self._answer = steps, answer
        self._regions = Regions(
            {s.name: [t for arm in s.arms for t in arm.targets] for s in steps.values()}
        )
        self._taken = set(steps)

    def machine(self) -> dict[str, Any]:
        begin = self._named("begin")
        document, known = self._scope(
            self._regions.first, None, _Known({REQUEST: "$.INPUT"}, "$.INPUT"), not self._answer
        )
        states = document["States"]
        if self._answer:
            fields = {f"{key}.$": self._path(read, known) for key, read in self._answer.items()}
            end = self._named("answer")
            for state in _ends(states):
                del state["End"]
                state["Next"] = end
            states[end] = {"Type": "Pass", "Parameters": fields, "End": True}
        first = {"Type": "Pass", "Parameters": {"INPUT.$": "$"}, "Next": document["StartAt"]}
        return {"StartAt": begin, "States": {begin: first, **states}}

    def _scope(
        self, starts: tuple[str, ...], stop: str | None, known: _Known, final: bool
    ) -> tuple[dict[str, Any], _Known]:
        """Return the states from `starts` to before `stop`, and what is known at their end."""
        scope = _Scope(self, stop, final)
        first = scope.follow(starts, known)
        while scope.waiting:
            scope.write_next()
        if first is None or scope.ended is None:
            raise ChironError("no-tasks", "the workflow has no step: add one")
        return {"StartAt": first, "States": scope.states}, scope.ended

    def _named(self, wanted: str) -> str:
        name, count = wanted, 1
        while name in self._taken:
            count += 1
            name = f"{wanted}_{count}"
        self._taken.add(name)
        return name

    def _path(self, read: Read, known: _Known) -> str:
        """Return the JSONPath of `read`; record a fault if its step may not have run."""
        if read.step not in known.paths:
            with self.faults.noting():
                what = "does not always run before" if read.step in self._steps else "is no step"
                raise ChironError(
                    "unknown-read",
                    f"{shown(f'{read.step}.{read.field}')} is read and {shown(read.step)} {what}: "
                    "read what a step before answers",
                    path=read.path,
                    functions=[read.step],
                )
        step = self._steps.get(read.step)
        items = "[*]" if step and step.each else ""
        path = known.paths.get(read.step, "$") + items
        names = read.field.split(".") if read.step == REQUEST else [read.field]
        return reduce(_field, names, path)

    def _rule(self, condition: Condition, known: _Known) -> dict[str, Any]:
        left, operator, right = condition
        variable = self._path(left, known)
        if operator == "!=":
            return {"Not": self._rule(Condition(left, "==", right), known)}
        kinds = ["Numeric", "String"]
        if isinstance(right, Read):
            suffix, value = "Path", self._path(right, known)
            kinds += ["Boolean"] if operator == "==" else []
        else:
            suffix, value = "", right
            kinds = ["String" if isinstance(right, str) else "Numeric"]
            kinds = ["Boolean"] if isinstance(right, bool) else kinds
        rules = [{"Variable": variable, k + _OPERATORS[operator] + suffix: value} for k in kinds]
        return rules[0] if len(rules) == 1 else {"Or": rules}


class _Scope:
    """One list of states under construction."""

    def __init__(self, writer: _Writer, stop: str | None, final: bool) -> None:
        self._writer, self._stop, self._final = writer, stop, final
        self.states: dict[str, dict[str, Any]] = {}
        #: A heap of the targets to write next, by the order of their steps.
        self.waiting: list[tuple[int, tuple[str, ...]]] = []
        self._arrived: dict[tuple[str, ...], _Known] = {}
        self._names: dict[tuple[str, ...], str] = {}
        self.ended: _Known | None = None

    def follow(self, targets: tuple[str, ...], known: _Known) -> str | None:
        """Return the name of the state that begins `targets`; None if the states end there."""
        regions = self._writer._regions
        if not targets or targets == (self._stop,):
            self.ended = known if self.ended is None else self.ended.joined(known)
            return None
        targets = regions.reduced(targets)
        if targets in self._arrived:
            self._arrived[targets] = self._arrived[targets].joined(known)
        else:
            self._arrived[targets] = known
            single = len(targets) == 1
            self._names[targets] = targets[0] if single else self._writer._named("parallel")
            heapq.heappush(self.waiting, (min(regions.order[t] for t in targets), targets))
        return self._names[targets]

    def write_next(self) -> None:
        """Write the first waiting state."""
        _, targets = heapq.heappop(self.waiting)
        known, name = self._arrived[targets], self._names[targets]
        if len(targets) > 1:
            self._write_parallel(name, targets, known)
        else:
            self._write_step(self._writer._steps[name], known)

    def _write_parallel(self, name: str, targets: tuple[str, ...], known: _Known) -> None:
        try:
            fork = self._writer._regions.fork(targets)
        except ChironError as error:
            place = self._writer._steps[targets[0]].path
            raise error.relocated(lambda _: place) from None
        join = (fork.join,) if fork.join else ()
        final = self._final and not join
        branches, paths = [], dict(known.paths)
        for index, starts in enumerate(fork.branches):
            branch, end = self._writer._scope(starts, fork.join, known, final)
            branches.append(branch)
            here = _field("$", name) + f"[{index}]"
            new = {step: path for step, path in end.paths.items() if step not in known.paths}
            paths |= {step: here + path.removeprefix("$") for step, path in new.items()}
        state: dict[str, Any] = {"Type": "Parallel", "Branches": branches}
        self.states[name] = state
        self._end(state, self.follow(join, _Known(paths, None)), name)

    def _write_step(self, step: Step, known: _Known) -> None:
        state = self._place(step.name, step)
        after, result = known, step.keeps
        if step.function is not None:
            state.update(self._work(step, known))
            result = step.name
            path = _field("$", result)
            after = _Known({**known.paths, result: path}, path)
        elif step.keeps is not None:
            state["Parameters"] = self._inputs(step, known)
            after = _Known({**known.paths, step.keeps: _field("$", step.keeps)}, known.last)
        if not step.decides:
            following = self.follow(step.arms[0].targets if step.arms else (), after)
            if step.function is None and following is None and self._final and known.last:
                state["InputPath"] = known.last
                state.pop("Parameters", None)
            self._end(state, following, result)
            return
        choice = state
        if result is not None:
            name = self._writer._named(f"{step.name}_decides")
            self._end(state, name, result)
            choice = self._place(name, step)
        choice.update({"Type": "Choice", "Choices": []})
        for arm in step.arms:
            following = self.follow(arm.targets, after) or self._nothing(step.name, after)
            if arm.condition is None:
                choice["Default"] = following
                break
            rule = self._writer._rule(arm.condition, after)
            choice["Choices"].append({**rule, "Next": following})

    def _place(self, name: str, step: Step) -> _Place:
        """Add a state for `step` that does nothing yet."""
        state = self.states[name] = _Place(Type="Pass")
        state.path = step.path
        return state

    def _inputs(self, step: Step, known: _Known) -> dict[str, Any]:
        """Return the template of the step's reads."""
        inputs: dict[str, Any] = {}
        for argument, read in (step.reads or {}).items():
            if isinstance(read, list):
                paths = ", ".join(self._writer._path(each, known) for each in read)
                inputs[f"{argument}.$"] = f"States.Array({paths})"
            else:
                inputs[f"{argument}.$"] = self._writer._path(read, known)
        return inputs

    def _work(self, step: Step, known: _Known) -> dict[str, Any]:
        """Return the fields of a step's state, without its successor."""
        inputs = self._inputs(step, known)
        task = {"Type": "Task", "Resource": step.function}
        if step.each:
            items = inputs[f"{step.each}.$"]
            inputs[f"{step.each}.$"] = "$$.Map.Item.Value"
            name = self._writer._named(f"{step.name}_foreach")
            processor = {"StartAt": name, "States": {name: task | {"End": True}}}
            return {
                "Type": "Map",
                "ItemsPath": items,
                "ItemSelector": inputs,
                "ItemProcessor": processor,
            }
        if step.reads is not None:
            return task | {"Parameters": inputs}
        if known.last is None:
            raise ChironError(
                "unknown-read",
                f"step {shown(step.name)} does not say what it reads, and more than one may come "
                "before it: name its input",
                path=step.path,
                functions=[step.name],
            )
        return task | {"InputPath": known.last}

    def _nothing(self, name: str, known: _Known) -> str:
        """Add a state that ends the states if a decision leads to no step; return its name."""
        end = self._writer._named(f"{name}_ends")
        state: dict[str, Any] = {"Type": "Pass", "End": True}
        if self._final and known.last:
            state["InputPath"] = known.last
        self.states[end] = state
        return end

    def _end(self, state: dict[str, Any], following: str | None, result: str | None) -> None:
        """Set the state's result path and its successor."""
        if result is not None and not (self._final and following is None):
            state["ResultPath"] = _field("$", result)
        state.update({"Next": following} if following else {"End": True})


def _field(path: str, name: str) -> str:
    if _PLAIN.fullmatch(name):
        return f"{path}.{name}"
    quoted = name.replace("\\", "\\\\").replace("'", "\\'")
    return f"{path}['{quoted}']"


def _ends(states: dict[str, dict[str, Any]]) -> list[dict[str, Any]]:
    return [state for state in states.values() if state.get("End")]


def _origins(scope: dict[str, Any], path: str, writer: _Writer) -> dict[str, str]:
    """Map the path of each state to the path of its source in the original document."""
    found = {}
    for name, state in scope["States"].items():
        here = f"{path}States.{name}"
        if isinstance(state, _Place):
            found[here] = state.path
        for index, branch in enumerate(state.get("Branches", ())):
            found |= _origins(branch, f"{here}.Branches[{index}].", writer)
    return found

"""Workflows in FaaSFlow's nested form, in YAML.

A step is a function, a sequence (or ``pass``) of steps, parallel branches, a switch, or a function
per item of a list. `inputMappings` and `outputMappings` name data as LOCAL or INPUT.

References
----------
FaaSFlow (ASPLOS'22), §4.1: its workflow definition language.
"""

from __future__ import annotations

from typing import Any

from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.faasflow import default_last
from chiron.workflow.fields import Fields, typed
from chiron.workflow.names import shown
from chiron.workflow.steps import (
    REQUEST,
    Arm,
    Read,
    Step,
    Translated,
    as_dag,
    checked,
    parse_condition,
)
from chiron.workflow.steps_machine import as_machine

_KINDS = ("function", "sequence", "pass", "parallel", "switch", "foreach")
_MAPPED = "name type inputMappings outputMappings"


def is_nested(document: dict[str, Any]) -> bool:
    return "type" in document


def translate_nested(document: dict[str, Any]) -> Translated:
    """Translate the nested form to a plain DAG or a state machine; raise as `translate_flat`."""
    faults = Faults()
    nested = _Nested(faults)
    whole = Fields(document, (), faults)
    names: dict[str, Read] = {}
    with faults.noting():
        names = nested.block(whole, {})[1]
    faults.raise_all()
    name = whole.text("name") if whole.word("type", *_KINDS) != "function" else None
    answer = names if "outputMappings" in whole else None
    checked(nested.steps)
    return (None if answer else as_dag(nested.steps, name)) or as_machine(
        nested.steps, name, answer
    )


#: The first steps of a block, and its outputs by name.
_Block = tuple[tuple[str, ...], dict[str, Read]]


class _Nested:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.steps: list[Step] = []

    def block(self, fields: Fields, local: dict[str, Read]) -> _Block:
        """Add the steps of a block, with open ends; `local` has the data that it knows by name."""
        kind = fields.word("type", *_KINDS)
        if kind == "function":
            return self._function(fields, local)
        if kind == "foreach":
            return self._foreach(fields, local)
        known = {"parallel": "branches", "switch": "choices"}.get(kind, "steps")
        Fields(fields.whole, fields.place, self._faults, f"{_MAPPED} {known}")
        if "inputMappings" in fields:
            local = local | dict(_mappings(fields, "inputMappings", local))
        inner = [
            (given, (*fields.place, known, index))
            for index, given in enumerate(fields.required_items(known))
        ]
        of_kind = {"parallel": self._parallel, "switch": self._switch}.get(kind, self._sequence)
        starts, given = of_kind(fields, inner, local)
        if "outputMappings" in fields:
            given = dict(_mappings(fields, "outputMappings", local | given))
        return starts, given

    def _sequence(self, _: Fields, inner: list[Any], local: dict[str, Read]) -> _Block:
        given: dict[str, Read] = {}
        known = dict(local)
        starts: tuple[str, ...] = ()
        open_ends: list[Step] = []
        for value, place in inner:
            first = len(self.steps)
            begins, names = self.block(Fields(value, place, self._faults), known)
            if len(begins) > 1 and len(open_ends) > 1:  # each begin waits for all ends
                self.steps.append(_barrier(open_ends, begins))
                begins = (self.steps[-1].name,)
            for step in open_ends:
                _join(step, begins)
            starts = starts or begins
            open_ends = [step for step in self.steps[first:] if _is_open(step)]
            known |= names
            given |= names
        return starts, given

    def _parallel(self, _: Fields, inner: list[Any], local: dict[str, Read]) -> _Block:
        starts: tuple[str, ...] = ()
        given: dict[str, Read] = {}
        for value, place in inner:
            with self._faults.noting():
                begins, names = self.block(Fields(value, place, self._faults), local)
                starts += begins
                given |= names
        return starts, given

    def _switch(self, fields: Fields, inner: list[Any], local: dict[str, Read]) -> _Block:
        step = Step(fields.text("name"), None, fields.path)
        self.steps.append(step)
        gives: list[tuple[list[Step], dict[str, Read]]] = []
        for value, place in inner:
            with self._faults.noting():
                choice = Fields(value, place, self._faults, "condition go")
                text, path = choice.text("condition"), choice.at("condition")
                condition = parse_condition(_resolved(text, local, path), None, path)
                first = len(self.steps)
                begins, names = self.block(choice.inner("go"), local)
                step.arms.append(Arm(begins, condition))
                gives.append(([each for each in self.steps[first:] if _is_open(each)], names))
        if step.arms:
            step.arms = default_last(step.arms, fields)
        if not gives or len(gives) < len(step.arms):  # without a default, outputs may be missing
            return (step.name,), {}
        common = [name for name in gives[0][1] if all(name in names for _, names in gives)]
        for index, (ends, names) in enumerate(gives if common else (), start=1):
            reads: dict[str, Read | list[Read]] = {name: names[name] for name in common}
            name = f"{step.name}_{index}"
            self.steps.append(Step(name, None, fields.path, reads, keeps=step.name))
            for end in ends:
                _join(end, (name,))
        return (step.name,), {name: Read(step.name, name, fields.path) for name in common}

    def _function(self, fields: Fields, local: dict[str, Read]) -> _Block:
        Fields(fields.whole, fields.place, self._faults, f"{_MAPPED} source output")
        step = Step(fields.text("name"), fields.text("source"), fields.path)
        if "inputMappings" in fields:
            step.reads = dict(_mappings(fields, "inputMappings", local))
        self.steps.append(step)
        given = {
            typed(name, str, (*fields.place, "output", index)): Read(step.name, name, fields.path)
            for index, name in enumerate(fields.items("output"))
        }
        if "outputMappings" in fields:
            given = dict(_mappings(fields, "outputMappings", given))
        return (step.name,), given

    def _foreach(self, fields: Fields, local: dict[str, Read]) -> _Block:
        Fields(fields.whole, fields.place, self._faults, f"{_MAPPED} task")
        task = fields.inner("task")
        if task.word("type", *_KINDS) != "function":
            message = "what runs for each item is one function: put its steps into one"
            raise ChironError("unsupported-field", message, path=task.at("type"))
        lists = [m for m in fields.items("inputMappings") if _source_of(m).endswith("[*]")]
        if len(lists) != 1:
            message = "one of inputMappings has to end in [*]: the list whose items it runs for"
            raise ChironError("bad-field", message, path=fields.at("inputMappings"))
        mine = dict(_mappings(fields, "inputMappings", local))
        starts, names = self._function(task, mine)
        step = self.steps[-1]
        step.each = typed(lists[0].get("target"), str, (*fields.place, "inputMappings"))
        reads = step.reads if isinstance(step.reads, dict) else {}
        for argument, read in reads.items():
            if isinstance(read, Read) and read[:2] == mine[step.each][:2]:
                step.each = argument
        step.reads = {**reads} or {**mine}
        if step.each not in step.reads:
            message = f"the function does not read {shown(step.each)}, an item of the list"
            raise ChironError("bad-field", message, path=task.at("inputMappings"))
        if "outputMappings" in fields:
            names = dict(_mappings(fields, "outputMappings", names))
        return starts, names


def _is_open(step: Step) -> bool:
    return not step.arms or any(not arm.targets for arm in step.arms)


def _barrier(ends: list[Step], begins: tuple[str, ...]) -> Step:
    name = f"{ends[0].name}_to_{begins[0]}"
    return Step(name, None, ends[0].path, arms=[Arm(begins)])


def _join(step: Step, after: tuple[str, ...]) -> None:
    """Connect the open ends of a step to the steps `after`."""
    step.arms = [Arm(arm.targets or after, arm.condition) for arm in step.arms or [Arm(())]]


def _source_of(mapping: Any) -> str:
    return str(mapping.get("source")) if isinstance(mapping, dict) else ""


def _mappings(fields: Fields, field: str, local: dict[str, Read]) -> list[tuple[str, Read]]:
    """Return the mappings of a block, as pairs of target and read."""
    found = []
    for index, value in enumerate(fields.items(field)):
        with fields.faults.noting():
            given = Fields(value, (*fields.place, field, index), fields.faults, "target source")
            source = given.text("source").replace("[*]", "")
            found.append((given.text("target"), _local(source, local, given.at("source"))))
    return found


def _local(source: str, local: dict[str, Read], path: str) -> Read:
    """Return the read of ``INPUT.field`` or ``LOCAL.field``."""
    where, _, field = source.partition(".")
    if where == "LOCAL" and field in local:
        return local[field]._replace(path=path)
    if where == "LOCAL":
        raise ChironError(
            "unknown-read",
            f"{shown(source)} is read and no function that always runs before has "
            f"{shown(field)} in its output: name it there, or INPUT.{field} if the request has it",
            path=path,
        )
    if where != REQUEST or not field:
        message = f"{shown(source)} has to be INPUT.field or LOCAL.field"
        raise ChironError("bad-field", message, path=path)
    return Read(REQUEST, field, path)


def _resolved(condition: str, local: dict[str, Read], path: str) -> str:
    """Replace LOCAL names in a condition by the steps that answer them."""
    words = condition.split()
    for index, word in enumerate(words):
        if word.startswith("LOCAL."):
            read = _local(word, local, path)
            words[index] = f"{read.step}.{read.field}"
    return " ".join(words)

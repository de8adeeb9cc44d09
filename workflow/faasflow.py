"""Workflows in FaaSFlow's flat form, in YAML; `faasflow_nested` reads the nested form.

Every function lists its successors, and the functions whose outputs it reads. Declared run times
and sizes are not needed: they are measured.

References
----------
FaaSFlow (ASPLOS'22), §4.1: its workflow definition language.
"""

from __future__ import annotations

from typing import Any

from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.fields import Fields, typed
from chiron.workflow.names import shown
from chiron.workflow.steps import (
    Arm,
    Condition,
    Read,
    Step,
    Translated,
    as_dag,
    checked,
    parse_condition,
)
from chiron.workflow.steps_machine import as_machine

_VIRTUAL, _END = "VIRTUAL", "END"


def is_flat(document: dict[str, Any]) -> bool:
    return "functions" in document


def translate_flat(document: dict[str, Any]) -> Translated:
    """Translate the flat form to a plain DAG, or to a state machine if data is named or decided on.

    Raises all faults, each with its path: ``unknown-field``, ``missing-field``, ``bad-field``,
    ``bad-condition``, ``unknown-next``, ``unknown-read``, ``not-series-parallel``, and others.
    """
    faults = Faults()
    whole = Fields(document, (), faults, "name global_input functions global_output")
    with faults.noting():
        inputs = whole.inner("global_input")
        for field in inputs.names:
            with faults.noting():
                _declared(inputs, field)
    flat = _Flat(whole)
    steps = []
    for index, given in enumerate(whole.required_items("functions")):
        with faults.noting():
            step = flat.step(Fields(given, ("functions", index), faults, _FLAT))
            if step.function != _END:
                steps.append(step)
    answer = None
    with faults.noting():
        answer = flat.answer(steps)
    faults.raise_all()
    name = whole.text("name") if "name" in whole else None
    flat.mark_items(steps)
    checked(steps)
    return (None if answer else as_dag(steps, name)) or as_machine(steps, name, answer)


_FLAT = "name source runtime scale mem_usage split_ratio input output next"


class _Flat:
    def __init__(self, whole: Fields) -> None:
        self._whole = whole
        self._items: dict[str, str] = {}
        self._outputs: dict[str, list[str]] = {}
        self._for_each: dict[str, str] = {}
        #: Function and output -> the value that it passes on, which its answer lacks.
        self._passed: dict[tuple[str, str], Read] = {}

    def step(self, fields: Fields) -> Step:
        fields.numbers("runtime", "scale", "mem_usage", "split_ratio")
        name, source = fields.text("name"), fields.text("source")
        step = Step(name, None if source == _VIRTUAL else source, fields.path)
        self._outputs[name] = [
            *fields.inner("output").each(lambda f: self._declared(fields, name, f))
        ]
        if "input" in fields:
            inputs = fields.inner("input")
            keys: list[str] = []
            step.reads = dict(inputs.each(lambda arg: (arg, self._read(inputs, arg, keys))))
            self._items[name] = keys[0] if len(keys) == 1 else ""
        if "next" in fields:
            step.arms = self._next(fields.inner("next", "type nodes conditions"), name)
        return step

    def _declared(self, fields: Fields, name: str, output: str) -> str:
        given = _declared(fields.inner("output"), output)
        if "value" in given:
            self._passed[name, output] = _value(given)
        return output

    def _origin(self, read: Read) -> Read:
        """Return the read of the value that `read` gets if its function only passes it on."""
        for _ in self._passed:
            if (source := self._passed.get((read.step, read.field))) is not None:
                read = source._replace(path=read.path)
        return read

    def _resolve(self, step: Step) -> None:
        """Replace the reads of values that functions only pass on."""

        def found(each: Any) -> Any:
            return self._origin(each) if isinstance(each, Read) else each

        if step.reads is not None:
            step.reads = {argument: found(read) for argument, read in step.reads.items()}
        step.arms = [
            Arm(arm.targets, arm.condition and Condition(*map(found, arm.condition)))
            for arm in step.arms
        ]

    def _read(self, inputs: Fields, argument: str, keys: list[str]) -> Read:
        given = _declared(inputs, argument)
        if given.word("type", "pass", "normal", "key", "keys") == "key":
            keys.append(argument)
        return _value(given)

    def _next(self, given: Fields, name: str) -> list[Arm]:
        kind = given.word("type", "pass", "parallel", "switch", "foreach")
        nodes = given.items("nodes")
        targets: list[str] = [typed(n, str, (*given.place, "nodes")) for n in nodes]
        if kind == "foreach":
            self._for_each |= dict.fromkeys(targets, given.path)
        if kind != "switch":
            if given.items("conditions"):
                message = f"conditions are for a switch, and the type is {kind}: remove them"
                raise ChironError("bad-field", message, path=given.at("conditions"))
            return [Arm(tuple(t for t in targets if t != _END))]
        conditions = given.required_items("conditions")
        if len(conditions) != len(targets):
            message = "a switch has as many conditions as nodes"
            raise ChironError("bad-field", message, path=given.at("conditions"))
        arms = []
        for index, (text, target) in enumerate(zip(conditions, targets, strict=True)):
            path = given.at("conditions", index)
            condition = parse_condition(
                typed(text, str, (*given.place, "conditions", index)), None, path
            )
            arms.append(Arm(() if target == _END else (target,), condition))
        return default_last(arms, given)

    def answer(self, steps: list[Step]) -> dict[str, Read] | None:
        """Return the workflow's answer by global_output; None for the last function's answer.

        If several functions may provide a value, steps are added that keep it after each of them.
        """
        outputs = self._whole.inner("global_output")
        answer = {}
        for field in outputs.names:
            given = _declared(outputs, field)
            if given.word("type", "pass", "normal", "switch") == "switch":
                name = f"{field}_of_either"
                for index, value in enumerate(given.required_items("value")):
                    place = (*given.place, "value", index)
                    read = _of(Fields(value, place, given.faults, "function parameter"))
                    steps.append(_kept(steps, {field: read}, name))
                answer[field] = Read(name, field, given.path)
            else:
                answer[field] = self._origin(_value(given))
        return answer or None

    def mark_items(self, steps: list[Step]) -> None:
        """Mark the functions that run once per item; resolve reads, and check them by name."""
        faults = Faults()
        for step in steps:
            self._resolve(step)
            with faults.noting():
                if step.name in self._for_each:
                    step.each = self._items.get(step.name) or None
                    if step.each is None:
                        raise ChironError(
                            "missing-field",
                            f"{shown(step.name)} runs for each item: give one of its input the "
                            "type key, and as value the list",
                            path=step.path,
                            functions=[step.name],
                        )
            reads = [each for each in (step.reads or {}).values() if isinstance(each, Read)]
            reads += [s for a in step.arms if a.condition for s in a.condition if type(s) is Read]
            for read in reads:
                with faults.noting():
                    _check_output(read, self._outputs)
        faults.raise_all()


def _declared(fields: Fields, name: str) -> Fields:
    """Return the declaration of a value, whose size is measured here."""
    given = fields.inner(name, "type value size")
    given.numbers("size")
    return given


def _value(given: Fields) -> Read:
    return _of(given.inner("value", "function parameter"))


def _of(value: Fields) -> Read:
    return Read(value.text("function"), value.text("parameter"), value.path)


def _kept(steps: list[Step], reads: dict[str, Read], name: str) -> Step:
    """Insert a step after the step that it reads, which keeps its reads under `name`."""
    (read,) = reads.values()
    step = next((step for step in steps if step.name == read.step), None)
    if step is None:
        message = f"{shown(read.step)} is no function here"
        raise ChironError("unknown-read", message, path=read.path, functions=[read.step])
    kept = Step(f"{step.name}_{name}", None, step.path, {**reads}, step.arms, keeps=name)
    step.arms = [Arm((kept.name,))]
    return kept


def _check_output(read: Read, outputs: dict[str, list[str]]) -> None:
    known = outputs.get(read.step)
    if known is not None and read.field not in known:
        raise ChironError(
            "unknown-read",
            f"{shown(f'{read.step}.{read.field}')} is read and is not in the output of "
            f"{shown(read.step)}: name it there",
            path=read.path,
            functions=[read.step],
        )


def default_last(arms: list[Arm], given: Fields) -> list[Arm]:
    """Return the arms of a switch, with a last arm that always holds."""
    if any(arm.condition is None for arm in arms[:-1]):
        raise ChironError("bad-field", "default is the last condition", path=given.path)
    if arms[0].condition is None:
        raise ChironError("bad-field", "a switch needs a condition", path=given.path)
    return arms if arms[-1].condition is None else [*arms, Arm(())]

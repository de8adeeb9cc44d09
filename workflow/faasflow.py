"""Workflows as FaaSFlow writes them, in YAML: nested, or flat.

Nested, a step is a function, a sequence (or ``pass``) of steps, parallel branches, a switch, or a
function for each item of a list; `inputMappings` and `outputMappings` name data as LOCAL or INPUT.
Flat, every function lists those that are next, and of which function's output it takes what.
What is said of run times and sizes is not needed: it is measured.

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
_VIRTUAL, _END = "VIRTUAL", "END"


def is_nested(document: dict[str, Any]) -> bool:
    """Whether a document has the nested form."""
    return "type" in document


def is_flat(document: dict[str, Any]) -> bool:
    """Whether a document has the flat form."""
    return "functions" in document


def translate_flat(document: dict[str, Any]) -> Translated:
    """The flat form as a plain DAG, or as a state machine where data is named or a step decides.

    Raises all faults, each with its path: ``unknown-field``, ``missing-field``, ``bad-field``,
    ``bad-condition``, ``unknown-next``, ``unknown-read``, ``not-series-parallel``, and others.
    """
    faults = Faults()
    whole = Fields(document, (), faults, "name global_input functions global_output")
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

    def step(self, fields: Fields) -> Step:
        """One of the functions."""
        fields.numbers("runtime", "scale", "mem_usage", "split_ratio")
        name, source = fields.text("name"), fields.text("source")
        step = Step(name, None if source == _VIRTUAL else source, fields.path)
        self._outputs[name] = [*fields.inner("output").each(lambda f: _declared(fields, f))]
        if "input" in fields:
            inputs = fields.inner("input")
            keys: list[str] = []
            step.reads = dict(inputs.each(lambda arg: (arg, self._read(inputs, arg, keys))))
            self._items[name] = keys[0] if len(keys) == 1 else ""
        if "next" in fields:
            step.arms = self._next(fields.inner("next", "type nodes conditions"), name)
        return step

    def _read(self, inputs: Fields, argument: str, keys: list[str]) -> Read:
        given = inputs.inner(argument, "type value size")
        given.numbers("size")
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
        return _default_last(arms, given)

    def answer(self, steps: list[Step]) -> dict[str, Read] | None:
        """What global_output says that the workflow answers; None for the last one's answer.

        What one function or another gives is kept after each of them, by steps that are added.
        """
        outputs = self._whole.inner("global_output")
        answer = {}
        for field in outputs.names:
            given = outputs.inner(field, "type value size")
            if given.word("type", "pass", "normal", "switch") == "switch":
                name = f"{field}_of_either"
                for index, value in enumerate(given.required_items("value")):
                    place = (*given.place, "value", index)
                    read = _of(Fields(value, place, given.faults, "function parameter"))
                    steps.append(_kept(steps, {field: read}, name))
                answer[field] = Read(name, field, given.path)
            else:
                answer[field] = _value(given)
        return answer or None

    def mark_items(self, steps: list[Step]) -> None:
        """Note which functions run for each item, and check what is read by name."""
        faults = Faults()
        for step in steps:
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


def _declared(fields: Fields, output: str) -> str:
    given = fields.inner("output").inner(output, "type size value")
    given.numbers("size")
    return output


def _value(given: Fields) -> Read:
    return _of(given.inner("value", "function parameter"))


def _of(value: Fields) -> Read:
    return Read(value.text("function"), value.text("parameter"), value.path)


def _kept(steps: list[Step], reads: dict[str, Read], name: str) -> Step:
    """A step after the one that gives what it reads, which is known by `name` from there on."""
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


def _default_last(arms: list[Arm], given: Fields) -> list[Arm]:
    """The arms of a switch, of which the last one's condition always holds."""
    if any(arm.condition is None for arm in arms[:-1]):
        raise ChironError("bad-field", "default is the last condition", path=given.path)
    if arms[0].condition is None:
        raise ChironError("bad-field", "a switch needs a condition", path=given.path)
    return arms if arms[-1].condition is None else [*arms, Arm(())]


def translate_nested(document: dict[str, Any]) -> Translated:
    """The nested form as a plain DAG, or as a state machine where data is named or a step decides.

    Raises what `translate_flat` raises.
    """
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


#: The steps with which a block begins, and what it gives by name.
_Block = tuple[tuple[str, ...], dict[str, Read]]


class _Nested:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults
        self.steps: list[Step] = []

    def block(self, fields: Fields, local: dict[str, Read]) -> _Block:
        """Add the steps of a block, whose ends are open; `local` is what it knows by name."""
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
            if len(begins) > 1 and len(open_ends) > 1:  # all of them wait for all
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
            step.arms = _default_last(step.arms, fields)
        if not gives or len(gives) < len(step.arms):  # without a default nothing may be given
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
    """Have the open ends of a step lead to what comes `after`."""
    step.arms = [Arm(arm.targets or after, arm.condition) for arm in step.arms or [Arm(())]]


def _source_of(mapping: Any) -> str:
    return str(mapping.get("source")) if isinstance(mapping, dict) else ""


def _mappings(fields: Fields, field: str, local: dict[str, Read]) -> list[tuple[str, Read]]:
    """By target what the mappings of a block take from the request, or from what is local."""
    found = []
    for index, value in enumerate(fields.items(field)):
        with fields.faults.noting():
            given = Fields(value, (*fields.place, field, index), fields.faults, "target source")
            source = given.text("source").replace("[*]", "")
            found.append((given.text("target"), _local(source, local, given.at("source"))))
    return found


def _local(source: str, local: dict[str, Read], path: str) -> Read:
    """What ``INPUT.field`` or ``LOCAL.field`` stands for."""
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
    """A condition with what is local named by the steps that answer it."""
    words = condition.split()
    for index, word in enumerate(words):
        if word.startswith("LOCAL."):
            read = _local(word, local, path)
            words[index] = f"{read.step}.{read.field}"
    return " ".join(words)

"""Workflows in DataFlower's YAML form: the data that flows from function to function.

Every function has a block with its inputs, its outputs and their destinations. Data of the type
FOREACH is a list: the destination function runs once per item. MERGE collects the outputs of these
runs as the input of type LIST of a function. A block of the type SWITCH routes data by conditions
on its own data.

References
----------
DataFlower (ASPLOS'23), §5 and figure 7: the data-flow graph of a workflow.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.fields import Fields
from chiron.workflow.names import shown
from chiron.workflow.regions import Regions
from chiron.workflow.steps import REQUEST, Arm, Read, Step, Translated, checked, parse_condition
from chiron.workflow.steps_machine import as_machine

#: The client's name among functions, and the name prefix of data that only triggers.
_USER, _VIRTUAL = "$USER", "virtual."


def is_dataflows(document: dict[str, Any]) -> bool:
    return "dataflows" in document or "templates" in document


def translate_dataflows(document: dict[str, Any]) -> Translated:
    """Return the state machine of a document in either spelling of this form.

    Raises all faults, each with its path: ``unknown-field``, ``missing-field``, ``bad-field``,
    ``bad-condition``, ``unknown-read``, ``not-series-parallel``, ``unsupported-field``, and others.
    """
    faults = Faults()
    whole = Fields(document, (), faults, _WHOLE)
    reader = _Reader(faults)
    kind = "dataflows" if "dataflows" in whole else "templates"
    functions = whole.inner(kind)
    blocks = [*functions.each(lambda name: reader.block(functions, name))]
    flows = [*reader.request(whole.inner("global_inputs"))]
    faults.raise_all()
    reader.connect(blocks, [*flows, *(flow for block in blocks for flow in block.flows)])
    faults.raise_all()
    name = next((whole.text(f) for f in ("workflow_name", "Workflow_name") if f in whole), None)
    steps = [block.step for block in blocks]
    checked(steps)
    regions = Regions({s.name: [t for arm in s.arms for t in arm.targets] for s in steps})
    for step in steps:  # drop targets that wait for another target
        step.arms = [Arm(regions.reduced(arm.targets), arm.condition) for arm in step.arms]
    return as_machine(steps, name)


_WHOLE = "workflow_name Workflow_name global_inputs dataflows templates"
_BLOCK = "type input_datas output_datas conditions"


class _Flow(NamedTuple):
    """Data sent from a function, or the request, to a function; `target` None is the client."""

    source: Read
    kind: str
    target: str | None
    data: str
    condition: str | None


@dataclass
class _Block:
    """A function's block: the types of its inputs, its outputs and their flows."""

    step: Step
    takes: dict[str, str]
    gives: list[str]
    flows: list[_Flow]
    conditions: list[str]
    #: Its inputs that only trigger it.
    triggers: set[str]


class _Reader:
    def __init__(self, faults: Faults) -> None:
        self._faults = faults

    def block(self, functions: Fields, name: str) -> _Block:
        place = (*functions.place, name)
        holder = Fields(functions.whole[name], place, self._faults)
        if "blocks" in holder:
            Fields(holder.whole, place, self._faults, "blocks")
            holder = holder.inner("blocks")
        if len(holder.names) != 1:
            raise ChironError(
                "unsupported-field",
                f"{shown(name)} has {len(holder.names)} blocks: make each a function",
                path=holder.path,
                functions=[name],
            )
        fields = holder.inner(holder.names[0], _BLOCK)
        if "type" in fields:
            fields.word("type", "NORMAL", "SWITCH")
        inputs, outputs = fields.inner("input_datas"), fields.inner("output_datas")
        block = _Block(Step(name, name, fields.path, reads={}), {}, outputs.names, [], [], set())
        for data in inputs.names:
            with self._faults.noting():
                self._take(block, inputs, data)
        kinds = dict(outputs.each(lambda data: (data, self._give(block, outputs, data))))
        conditions = fields.inner("conditions")
        for text in conditions.names:
            block.conditions.append(text)
            if conditions.whole[text] == _USER:
                continue
            flows = conditions.inner(text)
            for data in flows.names:
                read = Read(name, data, flows.at(data))
                block.flows += self._flows(flows, data, read, kinds.get(data, "NORMAL"), text)
        return block

    def _take(self, block: _Block, inputs: Fields, data: str) -> None:
        given = inputs.whole[data]
        if isinstance(given, str) and given.startswith(f"{_USER}."):
            block.takes[data] = "NORMAL"
            read = Read(REQUEST, given.removeprefix(f"{_USER}."), inputs.at(data))
            block.flows.append(_Flow(read, "NORMAL", block.step.name, data, None))
            return
        block.takes[data] = inputs.inner(data, "type").word("type", "NORMAL", "LIST")

    def _give(self, block: _Block, outputs: Fields, data: str) -> str:
        given = outputs.inner(data, "type dest destination")
        kind = given.word("type", "NORMAL", "FOREACH", "MERGE")
        for field in ("dest", "destination"):
            if field in given:
                read = Read(block.step.name, data, given.path)
                block.flows += self._flows(given, field, read, kind, None)
        return kind

    def request(self, inputs: Fields) -> Iterator[_Flow]:
        for name in inputs.names:
            given = inputs.inner(name, "type dest destination")
            if "type" in given:
                given.word("type", "NORMAL", "LIST")
            read = Read(REQUEST, name.removeprefix(f"{_USER}."), given.path)
            for field in ("dest", "destination"):
                if field in given:
                    yield from self._flows(given, field, read, "NORMAL", None)

    def _flows(
        self, holder: Fields, field: str, source: Read, kind: str, condition: str | None
    ) -> Iterator[_Flow]:
        """Yield the flows to the destinations in `field`: function, then block, then data."""
        if holder.whole[field] == _USER:
            yield _Flow(source, kind, None, "", condition)
            return
        functions = holder.inner(field)
        for function in functions.names:
            if function == _USER:
                yield _Flow(source, kind, None, "", condition)
                continue
            blocks = functions.inner(function)
            for block in blocks.names:
                given = blocks.inner(block)
                for data in given.names:
                    given.inner(data, "type")
                    yield _Flow(source, kind, function, data, condition)

    def connect(self, blocks: list[_Block], flows: list[_Flow]) -> None:
        """Set the reads and the successors of all steps."""
        by_name = {block.step.name: block for block in blocks}
        for flow in flows:
            with self._faults.noting():
                _check(flow, by_name)
                if flow.target:
                    _read(flow, by_name[flow.target])
        for flow in flows:
            with self._faults.noting():
                _check_merged(flow, by_name)
        for block in blocks:
            with self._faults.noting():
                _check_taken(block)
            mine = [flow for flow in block.flows if flow.source.step == block.step.name]
            if "default" in block.conditions[:-1]:
                with self._faults.noting():
                    path = f"{block.step.path}.conditions.default"
                    raise ChironError("bad-field", "default is the last condition", path=path)
            for condition in [*block.conditions, None] if block.conditions else [None]:
                targets = [f.target for f in mine if f.target and f.condition in (condition, None)]
                with self._faults.noting():
                    parsed = condition and parse_condition(
                        condition, block.step.name, f"{block.step.path}.conditions.{condition}"
                    )
                    for side in parsed or ():
                        if isinstance(side, Read) and side.step == block.step.name:
                            _check(_Flow(side, "NORMAL", None, "", condition), by_name)
                    block.step.arms.append(Arm(tuple(dict.fromkeys(targets)), parsed or None))
                if condition == "default":
                    break


def _check(flow: _Flow, blocks: dict[str, _Block]) -> None:
    """Refuse a flow with an unknown source, an unknown destination or the wrong type."""
    source, block = flow.source, blocks.get(flow.target or "")
    virtual = source.field.lower().startswith(_VIRTUAL)
    from_block = blocks.get(source.step)
    if from_block and not virtual and source.field not in from_block.gives:
        message = f"{shown(source.field)} is not in output_datas of {shown(source.step)}"
        raise ChironError("unknown-read", message, path=source.path, functions=[source.step])
    if flow.target is None:
        return
    if block is None:
        message = f"{shown(flow.target)} is no function here"
        raise ChironError("unknown-next", message, path=source.path, functions=[flow.target])
    kind = block.takes.get(flow.data)
    if kind is None and not virtual:
        message = f"{shown(flow.target)} has no {shown(flow.data)} in its input_datas"
        raise ChironError("unknown-read", message, path=source.path, functions=[flow.target])
    if kind == "NORMAL" and flow.kind == "MERGE":
        message = f"{shown(flow.data)} of {shown(flow.target)} is merged: its type is LIST"
        raise ChironError("bad-field", message, path=source.path, functions=[flow.target])


def _check_merged(flow: _Flow, blocks: dict[str, _Block]) -> None:
    """Refuse MERGE for a single run, and unmerged outputs of several runs."""
    source, block = flow.source, blocks.get(flow.source.step)
    for_each = block is not None and block.step.each is not None
    if for_each and flow.kind != "MERGE":
        raise ChironError(
            "unsupported-field",
            f"{shown(source.step)} runs for each item, and {shown(source.field)} of each run would "
            "go on by itself: give it the type MERGE, and do more for an item in one function",
            path=source.path,
            functions=[source.step],
        )
    if flow.kind == "MERGE" and not for_each:
        message = f"{shown(source.step)} runs once: there is nothing to merge; the type is NORMAL"
        raise ChironError("bad-field", message, path=source.path, functions=[source.step])


def _read(flow: _Flow, block: _Block) -> None:
    """Add the flow to the reads of the function of `block`."""
    step = block.step
    if flow.source.field.lower().startswith(_VIRTUAL):
        block.triggers.add(flow.data)
        return
    reads = step.reads = step.reads or {}
    if flow.kind == "FOREACH":
        if step.each not in (None, flow.data):
            message = f"{shown(step.name)} runs for the items of one list, not of two"
            raise ChironError("unsupported-field", message, path=flow.source.path)
        step.each = flow.data
    before = reads.get(flow.data)
    collects = block.takes[flow.data] == "LIST" and flow.kind == "NORMAL"
    if collects:
        reads[flow.data] = [*(before if isinstance(before, list) else []), flow.source]
    elif before is None or before[:2] == flow.source[:2]:
        reads[flow.data] = flow.source
    else:
        raise ChironError(
            "bad-field",
            f"{shown(flow.data)} of {shown(step.name)} comes from two functions: its type is LIST",
            path=flow.source.path,
            functions=[step.name],
        )


def _check_taken(block: _Block) -> None:
    """Refuse inputs of a function that no flow provides."""
    for data in block.takes:
        if data not in (block.step.reads or {}) and data not in block.triggers:
            raise ChironError(
                "unknown-read",
                f"{shown(data)} of {shown(block.step.name)} comes from nowhere: name it in the "
                "dest of what gives it",
                path=f"{block.step.path}.input_datas.{data}",
                functions=[block.step.name],
            )

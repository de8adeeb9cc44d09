"""The content of a workflow's picture: nodes, edges, and boxes around inner states."""

from __future__ import annotations

import json
import unicodedata
from dataclasses import dataclass, field
from typing import Any, Literal

from chiron.workflow.model import Workflow
from chiron.wrap.core.statemachine.choices import OPERATORS
from chiron.wrap.core.statemachine.expressions import expression_in

Shape = Literal["task", "state", "choice", "box", "dot", "text"]
#: The keys of a chart's begin and end among its nodes.
BEGIN, END = "(begin)", "(end)"
_LONGEST = 40


@dataclass
class Node:
    """One drawn element."""

    #: Its key among the nodes of its chart.
    key: str
    shape: Shape
    #: Its lines of text, the first in bold.
    lines: tuple[str, ...] = ()
    #: The charts in a box, side by side.
    inner: list[Chart] = field(default_factory=list)
    #: The errors on which it is retried.
    again: str = ""
    #: Whether it belongs to failures.
    warm: bool = False
    #: The full text of `lines`.
    whole: str = ""


@dataclass
class Edge:
    """An arrow; dashed if it is taken after a failure."""

    start: str
    end: str
    dashed: bool = False


@dataclass
class Chart:
    """Nodes by their keys, in order, and edges between them."""

    nodes: dict[str, Node] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)

    def add(self, node: Node) -> None:
        self.nodes[node.key] = node

    def join(self, start: str, end: str, label: str = "", dashed: bool = False) -> None:
        """Add an edge; its label is a node on the way, so that the layout reserves space for it."""
        if label:
            key = f"{start} -> {end} {len(self.edges)}"
            text = Node(key, "text", (_cut(label),), whole=label, warm=dashed)
            self.add(text)
            self.edges.append(Edge(start, text.key, dashed))
            start = text.key
        self.edges.append(Edge(start, end, dashed))


def chart_of(workflow: Workflow) -> Chart:
    """Return the picture of a workflow: its states if it is a machine, otherwise its tasks."""
    chart = Chart()
    chart.add(Node(BEGIN, "dot", ("request",)))
    if workflow.machine is not None:
        _add_states(chart, workflow.machine)
        chart.join(BEGIN, workflow.machine["StartAt"])
    else:
        _add_tasks(chart, workflow)
    continued = {edge.start for edge in chart.edges if not edge.dashed}
    failing = _failing(workflow)
    last = [key for key in chart.nodes if key not in continued and key not in failing]
    chart.add(Node(END, "dot", ("failure" if workflow.failure else "answer",)))
    for key in last:
        if chart.nodes[key].shape != "text":
            chart.join(key, END)
    return chart


def _failing(workflow: Workflow) -> set[str]:
    states = workflow.machine["States"] if workflow.machine is not None else {}
    return {name for name, state in states.items() if state["Type"] == "Fail"}


def _add_tasks(chart: Chart, workflow: Workflow) -> None:
    for task in workflow.tasks:
        chart.add(_node(task.name, "task", task.function))
        for before in task.predecessors or (BEGIN,):
            chart.join(before, task.name)


def _add_states(chart: Chart, scope: dict[str, Any]) -> None:
    for name, state in scope["States"].items():
        chart.add(_state(name, state))
    for name, state in scope["States"].items():
        if "Next" in state:
            chart.join(name, state["Next"])
        for rule in state.get("Choices", ()):
            chart.join(name, rule["Next"], said(rule))
        if "Default" in state:
            chart.join(name, state["Default"], "otherwise" if state.get("Choices") else "")
        for catcher in state.get("Catch", ()):
            chart.join(name, catcher["Next"], _errors("catch", catcher), dashed=True)


def _state(name: str, state: dict[str, Any]) -> Node:
    kind = state["Type"]
    again = "; ".join(_errors("retry", retrier) for retrier in state.get("Retry", ()))
    if kind == "Task":
        return _node(name, "task", state["Resource"], again)
    if kind == "Choice":
        return _node(name, "choice", "")
    inner = state.get("Branches") or [p for p in [state.get("ItemProcessor")] if p]
    if not inner:
        return _node(name, "state", _what(state))
    node = _node(name, "box", f"for each of {state.get('ItemsPath', '$')}" * (kind == "Map"), again)
    for scope in inner:
        below = Chart()
        _add_states(below, scope)
        node.inner.append(below)
    return node


def _node(name: str, shape: Shape, more: str, again: str = "") -> Node:
    lines = (_cut(name), _cut(more)) if more and more != name else (_cut(name),)
    whole = f"{name}: {more}" if more and more != name else name
    return Node(
        name, shape, lines, again=_cut(again), whole=f"{whole} ({again})" if again else whole
    )


def _what(state: dict[str, Any]) -> str:
    """Describe a state without a function in a word or two."""
    if state["Type"] == "Wait":
        said = {"Seconds": " s", "SecondsPath": " s", "Timestamp": "", "TimestampPath": ""}
        return next((f"wait {state[f]}{unit}" for f, unit in said.items() if f in state), "wait")
    if state["Type"] == "Fail":
        return f"fail {state.get('Error', '')}".strip()
    return str(state["Type"]).lower()


def _errors(what: str, handler: dict[str, Any]) -> str:
    errors = [name.removeprefix("States.") for name in handler["ErrorEquals"]]
    return f"{what} {', '.join(errors)}"


_SIGNS = {
    "LessThanEquals": "<=",
    "GreaterThanEquals": ">=",
    "LessThan": "<",
    "GreaterThan": ">",
    "Equals": "=",
    "Matches": "like",
}


def said(rule: dict[str, Any]) -> str:
    """Return a rule of a Choice in short.

    >>> said({"And": [{"Variable": "$.a", "NumericLessThan": 3}, {"Not": {"Variable": "$.b",
    ...     "IsPresent": True}}]})
    'a < 3 and not b is present'
    >>> said({"Condition": "{% $states.input.a < 3 %}"})
    '$states.input.a < 3'
    """
    if "Condition" in rule:
        return _condition(rule["Condition"])
    for word in ("And", "Or"):
        if word in rule:
            parts = [said(each) for each in rule[word]]
            mixed = [f"({p})" if len(rule[word]) > 1 and " or " in p else p for p in parts]
            return f" {word.lower()} ".join(mixed)
    if "Not" in rule:
        return f"not {said(rule['Not'])}"
    variable = rule["Variable"].removeprefix("$.")
    operator, value = next((k, v) for k, v in rule.items() if k in OPERATORS)
    if operator.startswith("Is"):
        return f"{variable} is {'' if value else 'not '}{operator[2:].lower()}"
    plain = operator.removesuffix("Path")
    sign = next(sign for word, sign in _SIGNS.items() if plain.endswith(word))
    shown = value.removeprefix("$.") if operator != plain else json.dumps(value, ensure_ascii=False)
    return f"{variable} {sign} {shown}"


def _condition(condition: str | bool) -> str:
    shown = condition if isinstance(condition, str) else json.dumps(condition)
    return (expression_in(shown) or shown).strip()


def _cut(text: str) -> str:
    """Truncate `text` to the longest width, on one line."""
    plain = "".join(c if c.isprintable() else " " for c in text)
    return plain if width(plain) <= _LONGEST else f"{_first(plain)}…"


def _first(text: str) -> str:
    end = len(text)
    while width(text[:end]) >= _LONGEST:
        end -= 1
    return text[:end]


def width(text: str) -> int:
    """Return the width of `text` in columns, one per Latin letter."""
    return sum(2 if unicodedata.east_asian_width(c) in "FW" else 1 for c in text)

"""An invalid state machine as elements of dash-cytoscape, with its faults.

Reads only the states and their transitions: the rest of the document may be anything.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from chiron.services.dashboard.graph import NODE_HEIGHT, UNPLANNED

#: The distance between states in pixels: their edges have short labels.
_WIDTH = 220
_FAULT = "#fb9a99"
_BORDER, _FAULT_BORDER = "#4d4d4d", "#a3141c"


class _State(NamedTuple):
    """A state, its path in the document, and its column from left to right."""

    path: str
    name: str
    written: dict[str, Any]
    column: int


def outline(document: Any, faults: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return nodes and edges of the states in `document`, parsed JSON or YAML; empty if none.

    A state has the codes of the `faults` whose ``path`` is in it and in no state within it.
    """
    states = {state.path: state for state in _states(document, "", 0)}
    wrong: dict[str, list[str]] = {}
    for fault in faults:
        within = [path for path in states if f"{fault['path']}.".startswith(f"{path}.")]
        if within:
            wrong.setdefault(max(within, key=len), []).append(fault["code"])
    found, rows = [], dict[int, int]()
    for path, state in states.items():
        rows[state.column] = row = rows.get(state.column, -1) + 1
        codes = dict.fromkeys(wrong.get(path, ()))
        data = {
            "id": path,
            "label": "\n".join([state.name, *codes]),
            "fill": _FAULT if codes else UNPLANNED,
            "border": _FAULT_BORDER if codes else _BORDER,
        }
        position = {"x": state.column * _WIDTH, "y": row * NODE_HEIGHT}
        found.append({"data": data, "position": position})
    edges: dict[tuple[str, str], dict[str, None]] = {}
    for state in states.values():
        for target, label in _next(state):
            if target in states:
                edges.setdefault((state.path, target), {}).setdefault(label)
    for (source, target), labels in edges.items():
        data = {"id": f"{source} -> {target}", "source": source, "target": target}
        found.append({"data": data | {"label": ", ".join(filter(None, labels))}})
    return found


def _states(scope: Any, path: str, column: int) -> Iterator[_State]:
    """Yield the states of a machine, or of a part of one, in the order they are reached."""
    states = scope.get("States") if isinstance(scope, dict) else None
    if not isinstance(states, dict):
        return
    prefix = f"{path}States."
    # Unreachable states come last.
    waiting = deque([(scope.get("StartAt"), column), *((name, column) for name in states)])
    seen = set[str]()
    while waiting:
        name, at = waiting.popleft()
        written = states.get(name) if isinstance(name, str) else None
        if name in seen or not isinstance(written, dict):
            continue
        seen.add(name)
        state = _State(f"{prefix}{name}", name, written, at)
        yield state
        last = at
        for inner, inner_path in _scopes(state):
            for each in _states(inner, inner_path, at + 1):
                last = max(last, each.column)
                yield each
        targets = [target.removeprefix(prefix) for target, _ in _next(state)]
        waiting.extendleft((target, last + 1) for target in reversed(targets))


def _scopes(state: _State) -> Iterator[tuple[Any, str]]:
    branches = state.written.get("Branches")
    for number, branch in enumerate(branches if isinstance(branches, list) else ()):
        yield branch, f"{state.path}.Branches[{number}]."
    for field in ("ItemProcessor", "Iterator"):
        yield state.written.get(field), f"{state.path}.{field}."


def _next(state: _State) -> Iterator[tuple[str, str]]:
    """Yield the paths of the state's successors, each with a label."""
    above = state.path.removesuffix(state.name)
    for inner, path in _scopes(state):
        if isinstance(inner, dict):
            yield f"{path}States.{inner.get('StartAt')}", ""
    fields = [(state.written, "Next", ""), (state.written, "Default", "else")]
    for listed, label in (("Choices", ""), ("Catch", "on error")):
        each = state.written.get(listed)
        fields += [(one, "Next", label) for one in (each if isinstance(each, list) else ())]
    for holder, field, label in fields:
        if isinstance(holder, dict) and field in holder:
            yield f"{above}{holder[field]}", label

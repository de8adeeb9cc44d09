"""Checks transitions: within the scope, every state reachable, no endless loop."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from chiron.workflow.asl_shapes import join, listed
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.names import shown

#: Types of states without Next and End.
WITHOUT_NEXT = ("Choice", "Succeed", "Fail")


def check_transitions(start: str, states: dict[str, Any], path: str, faults: Faults) -> None:
    """Record faults in the transitions of the scope at `path`.

    These are ``unknown-next``, ``cycle`` for a loop without an exit, and ``unreachable`` if all
    transitions are known.
    """
    certain = _known(start, join(path, "StartAt"), states, faults)
    follow: dict[str, list[str]] = {}
    for name, state in states.items():
        follow[name] = []
        certain &= isinstance(state, dict) and _says_what_follows(state)
        for at, target in transitions(state, join(path, f"States.{name}")):
            if isinstance(target, str) and _known(target, at, states, faults):
                follow[name].append(target)
            else:
                certain = False
    with faults.noting():
        _check_loops(start, states, follow, path)
    with faults.noting():
        if certain:
            _check_reachable(start, follow, path)


def _says_what_follows(state: dict[str, Any]) -> bool:
    return state.get("Type") in WITHOUT_NEXT or ("Next" in state) != (state.get("End") is True)


def transitions(state: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yield the path and the target of each transition of a state."""
    if not isinstance(state, dict):
        return
    for field in ("Next", "Default"):
        if field in state and "End" not in state:
            yield f"{path}.{field}", state[field]
    for field in ("Choices", "Catch"):
        entries = state.get(field)
        for index, entry in enumerate(entries if isinstance(entries, list) else ()):
            if isinstance(entry, dict) and "Next" in entry:
                yield f"{path}.{field}[{index}].Next", entry["Next"]


def _known(target: str, path: str, states: dict[str, Any], faults: Faults) -> bool:
    before = len(faults)
    with faults.noting():
        if target not in states:
            raise ChironError(
                "unknown-next",
                f"{shown(target)} is no state here: the states are {listed(states)}",
                path=path,
                functions=[target],
            )
    return len(faults) == before


def _check_loops(
    start: str, states: dict[str, Any], follow: dict[str, list[str]], path: str
) -> None:
    """Refuse a loop in which no state chooses its successor or catches an error."""
    passed: set[str] = set()
    for first in (start, *states):
        chain: dict[str, None] = {}
        name: str | None = first
        while name in follow and name not in passed:
            passed.add(name)
            chain[name] = None
            name = _always_next(states[name], follow[name])
        if name in chain:
            cycle = list(chain)[list(chain).index(name) :]
            raise ChironError(
                "cycle",
                f"states form a cycle that nothing leaves: {' -> '.join([*cycle, name])}: mend the "
                "Next of one of them, or lead out of it with a Choice",
                path=join(path, f"States.{cycle[-1]}.Next"),
                functions=cycle,
            )


def _always_next(state: dict[str, Any], targets: list[str]) -> str | None:
    """Return the only successor of a state, or None if it has several."""
    if not targets or state.get("Type") in WITHOUT_NEXT or "Catch" in state:
        return None
    return targets[0]


def _check_reachable(start: str, follow: dict[str, list[str]], path: str) -> None:
    reached, pending = {start}, [start]
    while pending:
        new = set(follow[pending.pop()]) - reached
        reached |= new
        pending += new
    unreachable = [name for name in follow if name not in reached]
    if unreachable:
        raise ChironError(
            "unreachable",
            f"no state leads to {listed(unreachable)}: remove it or point a Next at it",
            path=join(path, f"States.{unreachable[0]}"),
            functions=unreachable,
        )

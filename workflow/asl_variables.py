"""Checks the variables of a machine: their names and scopes.

States within a Map or a Parallel see the variables around it; their own are not visible outside. So
a name assigned in a scope cannot be assigned in a scope within it.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain
from typing import Any

from chiron.workflow.asl_shapes import join
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.names import shown

#: The limit of a variable's name in characters (AWS, "Passing data between states").
_LONGEST = 80
#: The name of JSONata's object with input, result, error and context.
_RESERVED = "states"


def check_variable_name(name: str, path: str) -> None:
    """Raise ``bad-name`` if `name` cannot be the name of a variable."""
    if not name.isidentifier() or len(name) > _LONGEST:
        what = f"letters, digits and _, a letter first, at most {_LONGEST} characters"
        raise ChironError("bad-name", f"{shown(name)} is no variable's name: {what}", path=path)
    if name == _RESERVED:
        message = f"${_RESERVED} is reserved for what a state gets: choose another name"
        raise ChironError("bad-name", message, path=path)


def check_scopes(
    scope: dict[str, Any], path: str, faults: Faults, outer: frozenset[str] = frozenset()
) -> None:
    """Record ``bad-name`` for names assigned both in `scope` and around it (`outer`)."""
    own = dict(chain.from_iterable(_assigned(scope, path)))
    for name in own.keys() & outer:
        with faults.noting():
            raise ChironError(
                "bad-name",
                f"variable {shown(name)} is assigned around these states too: rename one of them",
                path=own[name],
            )
    for name, state in scope["States"].items():
        # Its catchers assign when the states within it have ended.
        alone = {key: value for key, value in state.items() if key != "Catch"}
        others = scope | {"States": scope["States"] | {name: alone}}
        before = dict(chain.from_iterable(_assigned(others, path))) if "Catch" in state else own
        visible = outer | before.keys()
        at = join(path, f"States.{name}")
        for index, branch in enumerate(state.get("Branches", ())):
            check_scopes(branch, f"{at}.Branches[{index}]", faults, visible)
        if "ItemProcessor" in state:
            check_scopes(state["ItemProcessor"], f"{at}.ItemProcessor", faults, visible)


def _assigned(scope: dict[str, Any], path: str) -> Iterator[Iterator[tuple[str, str]]]:
    """Yield the names that the states of a scope assign, with the paths of their fields."""
    for name, state in scope["States"].items():
        at = join(path, f"States.{name}")
        yield _names(state, at)
        for field in ("Choices", "Catch"):
            for index, entry in enumerate(state.get(field, ())):
                yield _names(entry, f"{at}.{field}[{index}]")


def _names(holder: dict[str, Any], path: str) -> Iterator[tuple[str, str]]:
    for name in holder.get("Assign", ()):
        yield name.removesuffix(".$"), f"{path}.Assign.{name}"

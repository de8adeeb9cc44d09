"""What the objects of States Language hold, as tables; what is not supported is refused by name."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import get_close_matches
from itertools import islice
from types import MappingProxyType
from typing import Any, NamedTuple

from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.model import Task
from chiron.workflow.names import FunctionNames, shown


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a reader of a document has come upon: tasks in order, names of all states, faults."""

    functions: FunctionNames
    tasks: list[Task] = dataclasses.field(default_factory=list)
    names: set[str] = dataclasses.field(default_factory=set)
    #: The labels of Maps.
    labels: set[str] = dataclasses.field(default_factory=set)
    faults: Faults = dataclasses.field(default_factory=Faults)
    #: Fields that have no effect, and the states that have them.
    unused: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    #: Whether the document is written in JSONata.
    jsonata: bool = False


#: Takes a field's value, its path and what is known of the document so far; returns the value as
#: the machine keeps it, notes the faults of parts, and raises what is wrong with the whole.
Check = Callable[[Any, str, Reading], Any]

#: What of a field's name is compared to those that are known, in characters: comparing takes long.
_LONGEST = 40


class Shape(NamedTuple):
    """The fields that an object may have, those that it needs, and those of which it has one.

    `refused` says of other fields why they are refused.
    """

    fields: dict[str, Check]
    required: tuple[str, ...] = ()
    at_most_one: tuple[tuple[str, ...], ...] = ()
    exactly_one: tuple[tuple[str, ...], ...] = ()
    refused: Mapping[str, str] = MappingProxyType({})


#: What a check returns for a field that says nothing to a machine.
DROPPED = object()


def checked(holder: Any, shape: Shape, path: str, reading: Reading) -> dict[str, Any]:
    """The fields of `holder` as the machine keeps them; notes what is wrong with any of them."""
    typed(holder, dict, path)
    kept = {}
    for field, value in holder.items():
        with reading.faults.noting():
            check = _check_of(field, shape, join(path, field))
            result = check(value, join(path, field), reading)
            if result is not DROPPED:
                kept[field] = result
    for field in shape.required:
        with reading.faults.noting():
            required(holder, field, path)
    for group in (*shape.at_most_one, *shape.exactly_one):
        with reading.faults.noting():
            given = [field for field in group if field in holder]
            if len(given) > 1:
                what = f"{' and '.join(given)} exclude each other: keep one"
                raise ChironError("bad-field", what, path=join(path, given[1]))
            if not given and group in shape.exactly_one:
                raise ChironError(
                    "missing-field", f"one of {', '.join(group)} is missing", path=path
                )
    return kept


def checked_each(values: Iterable[Any], check: Check, path: str, reading: Reading) -> list[Any]:
    """The items of a list at `path` as the machine keeps them; notes what is wrong with any."""
    kept = []
    for index, value in enumerate(values):
        with reading.faults.noting():
            kept.append(check(value, f"{path}[{index}]", reading))
    return kept


def _check_of(field: str, shape: Shape, path: str) -> Check:
    known = shape.fields
    if field in known:
        return known[field]
    if field in shape.refused:
        raise ChironError("unsupported-field", shape.refused[field], path=path)
    close = get_close_matches(field[:_LONGEST], known, 1, 0.85)
    what = f"did you mean {close[0]}?" if close else f"known: {listed(sorted(known), 16)}"
    raise ChironError("unknown-field", f"{shown(field)} is not supported here; {what}", path=path)


def required(holder: dict[str, Any], field: str, path: str) -> Any:
    """The value of a field that has to be there, else ``missing-field``."""
    if field not in holder:
        raise ChironError("missing-field", f"{field} is missing", path=join(path, field))
    return holder[field]


def typed(value: Any, kind: type, path: str) -> Any:
    """`value` if it is of `kind`, else ``bad-field``."""
    if not isinstance(value, kind):
        names = {str: "a string", dict: "an object", list: "a list", bool: "true or false"}
        raise bad(path, f"has to be {names[kind]}")
    return value


def states_in(scope: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """The states of a machine that has been read, by their names, at any depth."""
    for name, state in scope["States"].items():
        yield name, state
        for below in (*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])):
            yield from states_in(below)


def join(path: str, field: str) -> str:
    """The path of a field of what is at `path`, which is empty for the document."""
    return f"{path}.{field}" if path else field


def listed(names: Iterable[str], most: int = 8) -> str:
    """The names for a message, at most so many."""
    first = [shown(name) for name in islice(names, most + 1)]
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


def bad(path: str, what: str) -> ChironError:
    """``bad-field``: what is wrong with the value of the field at `path`."""
    return ChironError("bad-field", f"{path.rpartition('.')[2]} {what}", path=path)

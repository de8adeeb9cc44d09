"""Checks objects of States Language by tables of their fields; refuses other fields by name."""

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
    """The results of reading a document: tasks in order, names of all states, faults."""

    functions: FunctionNames
    tasks: list[Task] = dataclasses.field(default_factory=list)
    names: set[str] = dataclasses.field(default_factory=set)
    #: The labels of Maps.
    labels: set[str] = dataclasses.field(default_factory=set)
    faults: Faults = dataclasses.field(default_factory=Faults)
    #: Field without effect -> the states with it.
    unused: dict[str, list[str]] = dataclasses.field(default_factory=dict)
    #: Whether the document is in JSONata.
    jsonata: bool = False


#: A check: maps a field's value, its path and the reading to the normalised value. It records
#: faults of parts in the reading and raises a fault of the whole value.
Check = Callable[[Any, str, Reading], Any]

#: The length up to which names of fields are compared for suggestions, which is slow.
_LONGEST = 40


class Shape(NamedTuple):
    """The allowed fields of an object, the required ones, and groups of exclusive fields.

    `refused` maps other fields to the reason why they are refused.
    """

    fields: dict[str, Check]
    required: tuple[str, ...] = ()
    at_most_one: tuple[tuple[str, ...], ...] = ()
    exactly_one: tuple[tuple[str, ...], ...] = ()
    refused: Mapping[str, str] = MappingProxyType({})


#: The result of a check for a field that the machine does not keep.
DROPPED = object()


def checked(holder: Any, shape: Shape, path: str, reading: Reading) -> dict[str, Any]:
    """Return the normalised fields of `holder`; record their faults."""
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
    """Return the normalised items of a list at `path`; record their faults."""
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
    """Return the value of a required field. Raises ``missing-field``."""
    if field not in holder:
        raise ChironError("missing-field", f"{field} is missing", path=join(path, field))
    return holder[field]


def typed(value: Any, kind: type, path: str) -> Any:
    """Return `value` if it is of type `kind`. Raises ``bad-field``."""
    if not isinstance(value, kind):
        names = {str: "a string", dict: "an object", list: "a list", bool: "true or false"}
        raise bad(path, f"has to be {names[kind]}")
    return value


def states_in(scope: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield name and state of all states of a normalised machine, at any depth."""
    for name, state in scope["States"].items():
        yield name, state
        for below in (*state.get("Branches", ()), *filter(None, [state.get("ItemProcessor")])):
            yield from states_in(below)


def join(path: str, field: str) -> str:
    """Return the path of a field of the object at `path`; empty for the document."""
    return f"{path}.{field}" if path else field


def listed(names: Iterable[str], most: int = 8) -> str:
    """Join names for a message; long lists are cut."""
    first = [shown(name) for name in islice(names, most + 1)]
    return ", ".join(first[:most]) + (", ..." if len(first) > most else "")


def bad(path: str, what: str) -> ChironError:
    """Return the error ``bad-field`` about the field at `path`."""
    return ChironError("bad-field", f"{path.rpartition('.')[2]} {what}", path=path)

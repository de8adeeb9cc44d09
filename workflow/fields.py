"""The fields of one object in a document: read by type; unknown fields are refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from chiron.workflow.documents import dotted
from chiron.workflow.errors import ChironError, Faults
from chiron.workflow.names import meant, shown

Read = TypeVar("Read")

_KINDS: dict[type, str] = {str: "text", dict: "an object", list: "a list", float: "a number"}


class Fields:
    """An object at `place` of a document, with the fields `known`, or with any fields if None.

    Raises ``bad-field`` if `value` is no object; unknown fields are recorded in `faults`.
    """

    def __init__(
        self, value: Any, place: tuple[str | int, ...], faults: Faults, known: str | None = None
    ) -> None:
        self.place, self.faults = place, faults
        self.whole: dict[str, Any] = typed(value, dict, place)
        for field in self.whole if known is not None else ():
            with faults.noting():
                _check_known(field, (known or "").split(), (*place, field))

    def __contains__(self, field: str) -> bool:
        return self.whole.get(field) is not None

    @property
    def names(self) -> list[str]:
        return list(self.whole)

    @property
    def path(self) -> str:
        return dotted(self.place)

    def at(self, *more: str | int) -> str:
        """Return the path of an element below the object."""
        return dotted((*self.place, *more))

    def text(self, field: str) -> str:
        """Return a required text."""
        found: str = self._required(field, str)
        return found

    def items(self, field: str) -> list[Any]:
        """Return an optional list, empty by default."""
        found: list[Any] = self._optional(field, list, [])
        return found

    def required_items(self, field: str) -> list[Any]:
        """Return a required list of at least one value."""
        found: list[Any] = self._required(field, list)
        if not found:
            raise ChironError("bad-field", f"{field} needs at least one value", path=self.at(field))
        return found

    def word(self, field: str, *words: str) -> str:
        """Return a required text, one of `words`."""
        found = self.text(field)
        if found not in words:
            listed = ", ".join(words)
            message = f"{field} is {shown(found)}; there are: {listed}"
            raise ChironError("bad-field", message, path=self.at(field))
        return found

    def numbers(self, *fields: str) -> None:
        """Check the type of fields whose values are measured here and thus not needed."""
        for field in fields:
            with self.faults.noting():
                self._optional(field, float, 0.0)

    def inner(self, field: str, known: str | None = None) -> Fields:
        """Return an optional object, empty by default."""
        found = self._optional(field, dict, {})
        return Fields(found, (*self.place, field), self.faults, known)

    def each(self, read: Callable[[str], Read]) -> Iterator[Read]:
        """Yield `read` of each field's name; its faults are recorded."""
        for field in self.whole:
            with self.faults.noting():
                yield read(field)

    def _required(self, field: str, kind: type) -> Any:
        if field not in self.whole:
            raise ChironError("missing-field", f"{field} is missing", path=self.at(field))
        return typed(self.whole[field], kind, (*self.place, field))

    def _optional(self, field: str, kind: type, default: Any) -> Any:
        given = self.whole.get(field)
        return default if given is None else typed(given, kind, (*self.place, field))


def typed(value: Any, kind: type, place: tuple[str | int, ...]) -> Any:
    """Return `value` if it is of `kind`; raise ``bad-field`` otherwise."""
    kinds = (int, float) if kind is float else kind
    if not isinstance(value, kinds) or isinstance(value, bool):
        what = f"{place[-1] if place else 'the document'} has to be {_KINDS[kind]}"
        raise ChironError("bad-field", what, path=dotted(place) or None)
    return value


def _check_known(field: str, known: list[str], place: tuple[str | int, ...]) -> None:
    if field not in known:
        message = f"{shown(field)} is not known; {meant(field, known)}"
        raise ChironError("unknown-field", message, path=dotted(place))

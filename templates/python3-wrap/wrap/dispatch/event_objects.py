"""Objects as buckets see them: their memory, their fields and items, and lists of them."""

from __future__ import annotations

from collections.abc import Sequence

from wrap.core.buckets.contents import NOTHING_BYTES, field_of, is_nothing, items_of
from wrap.core.buckets.flow import Firing
from wrap.core.buckets.triggers import Item
from wrap.values.inputs import Inputs
from wrap.values.value import JSON, Object

#: Bytes of memory of an object beside its content: its holder, its number, table entries.
OBJECT_BYTES = 500


class _Item(Object):
    """An item of a JSON list, so that its text is JSON."""

    __slots__ = ()


class Objects:
    """The operations of buckets on objects."""

    def size(self, value: Object) -> int:
        return value.memory + OBJECT_BYTES

    def field(self, value: Object, name: str) -> str:
        return field_of(value.view(), name)

    def items(self, value: Object) -> Sequence[Object]:
        found = items_of(value.view())
        return [value] if found is None else [_Item(item, JSON) for item in found]


def input_of(firing: Firing[str, Object]) -> Object:
    return firing.items[0].value if firing.single else listed(firing.items)


def given_by(output: Object | None) -> Object | None:
    """Return the output of a function; None if it stands for no object."""
    if output is not None and output.size <= NOTHING_BYTES and is_nothing(output.view()):
        return None
    return output


def listed(items: Sequence[Item[Object]]) -> Object:
    """Return the JSON list of objects. Raises TaskError, ``not-text``, if one is no text."""
    if all(isinstance(item.value, _Item) for item in items):  # all are valid JSON
        return Object(b"[" + b",".join(item.value.view() for item in items) + b"]", JSON)
    return Inputs(dict(enumerate(item.value for item in items))).resolve([*range(len(items))])

"""Objects as buckets have them: what they take, their fields and items, lists of them."""

from __future__ import annotations

from collections.abc import Sequence

from wrap.core.buckets.contents import NOTHING_BYTES, field_of, is_nothing, items_of
from wrap.core.buckets.flow import Firing
from wrap.core.buckets.triggers import Item
from wrap.values.inputs import Inputs
from wrap.values.value import JSON, Object

#: What an object takes in memory beside its own bytes: what has it, its number, places in tables.
OBJECT_BYTES = 500


class _Item(Object):
    """One of a JSON list, and so JSON itself."""

    __slots__ = ()


class Objects:
    """What buckets have to know of objects."""

    def size(self, value: Object) -> int:
        return value.memory + OBJECT_BYTES

    def field(self, value: Object, name: str) -> str:
        return field_of(value.view(), name)

    def items(self, value: Object) -> Sequence[Object]:
        found = items_of(value.view())
        return [value] if found is None else [_Item(item, JSON) for item in found]


def input_of(firing: Firing[str, Object]) -> Object:
    """What a run is given."""
    return firing.items[0].value if firing.single else listed(firing.items)


def given_by(output: Object | None) -> Object | None:
    """What a function has given, if that is an object."""
    if output is not None and output.size <= NOTHING_BYTES and is_nothing(output.view()):
        return None
    return output


def listed(items: Sequence[Item[Object]]) -> Object:
    """The JSON list of objects. Raises TaskError, ``not-text``, where one is no text."""
    if all(isinstance(item.value, _Item) for item in items):  # nothing is to be read again
        return Object(b"[" + b",".join(item.value.view() for item in items) + b"]", JSON)
    return Inputs(dict(enumerate(item.value for item in items))).resolve([*range(len(items))])

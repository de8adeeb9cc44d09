"""How buckets read the contents of objects: list items, fields, and whether there is an object."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Content = str | bytes | bytearray | memoryview

_LIST = msgspec.json.Decoder(list[msgspec.Raw]).decode
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_VALUE = msgspec.json.Decoder().decode
#: The outputs that stand for no object, and their maximum length.
_NOTHING = (b"", b"null")
NOTHING_BYTES = max(map(len, _NOTHING))


def items_of(content: Content) -> Sequence[bytes] | None:
    """Return the texts of a JSON list's items, verbatim; None if it is no list in UTF-8."""
    try:
        items = list(map(bytes, _LIST(content)))
        for item in items:  # msgspec does not check it
            if not item.isascii():
                item.decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return items


def most_items(content: Content) -> int:
    """Return an upper bound for the number of a JSON list's items, without parsing it."""
    whole = content.obj if isinstance(content, memoryview) else content
    if isinstance(whole, str):
        return whole.count(",") + 1
    if not isinstance(whole, bytes | bytearray) or len(whole) != len(content):
        whole = bytes(content)  # type: ignore[arg-type]
    return whole.count(b",") + 1


def field_of(content: Content, name: str) -> str:
    """Return a field of a JSON object: a string as it is, else its text; empty if it is missing."""
    try:
        found = bytes(_OBJECT(content)[name])
        value: Any = _VALUE(found)
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError):
        return ""
    return value if isinstance(value, str) else found.decode()


def is_nothing(content: Content) -> bool:
    """Return whether the content stands for no object: an empty text, or JSON's null."""
    if len(content) > NOTHING_BYTES:
        return False
    return (content.encode() if isinstance(content, str) else bytes(content)) in _NOTHING

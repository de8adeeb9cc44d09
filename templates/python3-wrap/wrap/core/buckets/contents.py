"""What buckets look at in the contents of objects: the items of a list, a field, nothing at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

Content = str | bytes | bytearray | memoryview

_LIST = msgspec.json.Decoder(list[msgspec.Raw]).decode
_OBJECT = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_VALUE = msgspec.json.Decoder().decode
#: What a function gives that gives no object, and how long that is at most.
_NOTHING = (b"", b"null")
NOTHING_BYTES = max(map(len, _NOTHING))


def items_of(content: Content) -> Sequence[bytes] | None:
    """The texts of a JSON list's items, as they stand there; None where it is no list in UTF-8."""
    try:
        items = list(map(bytes, _LIST(content)))
        for item in items:  # which msgspec leaves unread
            if not item.isascii():
                item.decode()
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return None
    return items


def most_items(content: Content) -> int:
    """How many items a JSON list has at most, without reading it."""
    whole = content.obj if isinstance(content, memoryview) else content
    if isinstance(whole, str):
        return whole.count(",") + 1
    if not isinstance(whole, bytes | bytearray) or len(whole) != len(content):
        whole = bytes(content)  # type: ignore[arg-type]
    return whole.count(b",") + 1


def field_of(content: Content, name: str) -> str:
    """A field of a JSON object: a string as it is, else its text; empty where there is none."""
    try:
        found = bytes(_OBJECT(content)[name])
        value: Any = _VALUE(found)
    except (msgspec.DecodeError, UnicodeError, RecursionError, KeyError):
        return ""
    return value if isinstance(value, str) else found.decode()


def is_nothing(content: Content) -> bool:
    """Whether there is no object: an empty text, or JSON's null."""
    if len(content) > NOTHING_BYTES:
        return False
    return (content.encode() if isinstance(content, str) else bytes(content)) in _NOTHING

"""Bytes within JSON: a string where they are UTF-8, else ``{"base64": "..."}``."""

from __future__ import annotations

import base64

#: What of a JSON document stands for bytes.
InJson = str | dict[str, str]


def to_json(content: bytes | memoryview) -> InJson:
    """What stands for `content` in a JSON document."""
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def from_json(value: object) -> bytes:
    """The bytes for which `value` stands; ValueError if it stands for none."""
    match value:
        case str():
            return value.encode()
        case {"base64": str(encoded), **others} if not others:
            return base64.b64decode(encoded, validate=True)
    raise ValueError('bytes in JSON are a string or {"base64": "..."}')

"""Bytes within JSON: a string if they are UTF-8, else ``{"base64": "..."}``."""

from __future__ import annotations

import base64

#: The JSON value that represents bytes.
InJson = str | dict[str, str]


def to_json(content: bytes | memoryview) -> InJson:
    try:
        return str(content, "utf-8")
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def from_json(value: object) -> bytes:
    """Return the bytes that `value` represents. Raises ValueError if it represents none."""
    match value:
        case str():
            return value.encode()
        case {"base64": str(encoded), **others} if not others:
            return base64.b64decode(encoded, validate=True)
    raise ValueError('bytes in JSON are a string or {"base64": "..."}')

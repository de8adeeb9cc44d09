"""JSON by msgspec, or by the standard library in a sub-interpreter, which msgspec refuses."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

#: Returns a value as JSON in UTF-8. Raises TypeError, or ValueError for half a surrogate pair.
encoded: Callable[[Any], bytes]
#: Raises `NotJsonError`, UnicodeEncodeError or RecursionError for a text that is no JSON.
check: Callable[[str], object]
NotJsonError: type[Exception]


def refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no JSON")


try:
    import msgspec
except ImportError:
    _encode = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode
    _decode = json.JSONDecoder(parse_int=str, parse_constant=refuse).decode
    encoded, check, NotJsonError = lambda value: _encode(value).encode(), _decode, ValueError
else:
    # Makes no values: 1 ms for 1 MB, where `json` takes 11 ms.
    check = msgspec.json.Decoder(msgspec.Raw).decode
    encoded, NotJsonError = msgspec.json.Encoder().encode, msgspec.DecodeError

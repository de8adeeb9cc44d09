"""The intrinsic functions, applied to values.

They follow AWS's pages where those are more precise than the specification: limits, rounding, the
exclusive end of MathRandom. The deep JsonMerge, which AWS refuses, follows the specification.
"""

from __future__ import annotations

import base64
import hashlib
import math
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from .chance import Chance
from .limit import longest, look
from .values import Text, dump, identity, number_of, parse, shown, size_of

#: Limits: elements of a range, and characters to encode or hash.
_MOST_ELEMENTS, _MOST_CHARACTERS = 1000, 10_000
_HASHES = {
    "MD5": hashlib.md5,
    "SHA-1": hashlib.sha1,
    "SHA-256": hashlib.sha256,
    "SHA-384": hashlib.sha384,
    "SHA-512": hashlib.sha512,
}


class Refused(Exception):  # noqa: N818  # never leaves the intrinsic functions
    """Raised for arguments that a function does not accept."""


def format_(template: Any, *values: Any) -> str:
    """Fill each ``{}`` of `template` with a value."""
    return filled(_text(template).split("{}"), *values)


def filled(texts: Sequence[str], *values: Any) -> str:
    """Join `texts` with the values between them."""
    if len(texts) - 1 != len(values):
        raise Refused(f"there are {len(texts) - 1} {{}} and {len(values)} values for them")
    parts = [each for pair in zip(texts, map(_filling, values), strict=False) for each in pair]
    parts.append(texts[-1])
    if (size := sum(map(len, parts))) > longest():
        raise Refused(f"a string may have {longest():.0f} characters, not {size}")
    return "".join(parts)


def _filling(value: Any) -> str:
    return _shown(_bounded(value))


def _shown(value: Any) -> str:
    """Format a value; objects and arrays in the notation of AWS's interpreter."""
    look()
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}={_shown(each)}' for name, each in value.items())}}}"
    return dump(value)


def _string_to_json(text: Any) -> Any:
    if not _text(text).strip():
        return None  # as AWS answers
    value = parse(text)
    if isinstance(value, Text):
        raise Refused("the string is no JSON")
    return value


def _json_to_string(value: Any) -> str:
    return dump(str(value) if isinstance(value, Text) else _bounded(value))


def _array(*values: Any) -> list[Any]:
    return list(values)


def _array_partition(array: Any, size: Any) -> list[list[Any]]:
    items, step = _items(array), _integer(size)
    if step < 1:
        raise Refused("the size of the parts has to be positive")
    parts = list[list[Any]]()
    for start in range(0, len(items), step):
        look()
        parts.append(items[start : start + step])
    return parts


def _array_contains(array: Any, value: Any) -> bool:
    wanted = identity(_bounded(value))
    return any(identity(item) == wanted for item in _bounded(_items(array)))


def _array_range(first: Any, last: Any, step: Any) -> list[int]:
    start, end, by = _integer(first), _integer(last), _integer(step)
    if by == 0:
        raise Refused("the step must not be 0")
    number = max(0, (end - start) // by + 1)
    if number > _MOST_ELEMENTS:
        raise Refused(f"an array may have {_MOST_ELEMENTS} elements, not {number}")
    return [start + by * place for place in range(number)]


def _array_get_item(array: Any, index: Any) -> Any:
    items, place = _items(array), _integer(index)
    if not 0 <= place < len(items):
        raise Refused(f"there is no element {place} of {len(items)}")
    return items[place]


def _array_length(array: Any) -> int:
    return len(_items(array))


def _array_unique(array: Any) -> list[Any]:
    first: dict[Any, Any] = {}
    for item in _bounded(_items(array)):
        first.setdefault(identity(item), item)
    return list(first.values())


def _base64_encode(text: Any) -> str:
    return base64.b64encode(_bytes(_short(_text(text)))).decode("ascii")


def _base64_decode(text: Any) -> str:
    try:
        return base64.b64decode(_short(_text(text)), validate=True).decode()
    except ValueError as error:
        raise Refused(f"the string is no base64 of UTF-8: {error}") from None


def _hash(data: Any, algorithm: Any) -> str:
    made = _HASHES.get(_text(algorithm))
    if made is None:
        raise Refused(f"the algorithm has to be one of {', '.join(_HASHES)}")
    text = _short(data if isinstance(data, str) else dump(_bounded(data)))
    return made(_bytes(text), usedforsecurity=False).hexdigest()


def _json_merge(first: Any, second: Any, deep: Any) -> dict[str, Any]:
    if not isinstance(deep, bool):
        raise Refused("the third argument has to be true or false")
    both = _object(first), _object(second)
    return _merged(*map(_bounded, both)) if deep else both[0] | both[1]


def _merged(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    merged = first | second
    for name in first.keys() & second.keys():
        look()
        if isinstance(first[name], dict) and isinstance(second[name], dict):
            merged[name] = _merged(first[name], second[name])
    return merged


def _math_random(chance: Chance, start: Any, end: Any, seed: Any = None) -> int:
    low, high = _integer(start), _integer(end)
    if low >= high:
        raise Refused("the end, which is exclusive, has to be greater than the start")
    if seed is None:
        return chance.randrange(low, high)
    digest = hashlib.sha256(str(_integer(seed)).encode()).digest()
    return low + int.from_bytes(digest) % (high - low)


def _math_add(first: Any, second: Any) -> int:
    numbers = _integer(first), _integer(second)
    if not all(-(2**31) <= number < 2**31 for number in numbers):
        raise Refused("numbers have to be from -2147483648 to 2147483647")
    return sum(numbers)


def _string_split(text: Any, delimiters: Any) -> list[str]:
    """Split at any character of `delimiters`; drop empty parts."""
    given, signs = _text(text), _text(delimiters)
    if signs:
        given = given.translate(dict.fromkeys(map(ord, set(signs)), signs[0]))
    return [part for part in (given.split(signs[0]) if signs else [given]) if part]


def _uuid(chance: Chance) -> str:
    return str(uuid.UUID(int=chance.getrandbits(128), version=4))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _wrong("a string", value)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else _wrong("an array", value)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else _wrong("an object", value)


def _integer(value: Any) -> int:
    """Round to the nearest integer, halves up."""
    number = number_of(value)
    if number is None:
        return int(_wrong("a number", value))
    below: int = math.floor(number)
    return below + bool(number - below >= 0.5)


def _short(text: str) -> str:
    if len(text) > _MOST_CHARACTERS:
        raise Refused(f"a string may have {_MOST_CHARACTERS} characters, not {len(text)}")
    return text


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise Refused(f"the string has no UTF-8: {error}") from None


def _wrong(kind: str, value: Any) -> Any:
    raise Refused(f"an argument has to be {kind}, not {shown(value)}")


def _bounded(value: Any) -> Any:
    """Return `value` unless it is too large: shared parts count each time."""
    if isinstance(value, dict | list) and (size := size_of(value)) > longest():
        raise Refused(f"a value may have {longest():.0f} characters, not about {size}")
    return value


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "States.Format": format_,
    "States.StringToJson": _string_to_json,
    "States.JsonToString": _json_to_string,
    "States.Array": _array,
    "States.ArrayPartition": _array_partition,
    "States.ArrayContains": _array_contains,
    "States.ArrayRange": _array_range,
    "States.ArrayGetItem": _array_get_item,
    "States.ArrayLength": _array_length,
    "States.ArrayUnique": _array_unique,
    "States.Base64Encode": _base64_encode,
    "States.Base64Decode": _base64_decode,
    "States.Hash": _hash,
    "States.JsonMerge": _json_merge,
    "States.MathRandom": _math_random,
    "States.MathAdd": _math_add,
    "States.StringSplit": _string_split,
    "States.UUID": _uuid,
}

#: Functions with random results; their first argument is the source of random values.
RANDOM = frozenset((_math_random, _uuid))

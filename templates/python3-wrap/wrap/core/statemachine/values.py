"""The values that flow between states: JSON as Python objects, and texts that are no JSON."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Hashable
from datetime import UTC, datetime
from decimal import Decimal
from fractions import Fraction
from typing import Any

from .errors import StatesError
from .limit import look

#: The limit of nesting. A recursive walk takes two of Python's 1,000 frames a level; the other
#: frames are for the server and for nested states.
MOST_LEVELS = 200
#: The approximate JSON length of a number, true, false or null.
_NUMBER = 4
#: Messages quote values up to this many characters.
_LONGEST_SHOWN = 1 << 16
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_TIMESTAMP = re.compile(
    r"(\d{4})-(\d\d)-(\d\d)T(\d\d):(\d\d):(\d\d)(\.\d{1,99})?(?:Z|([+-])([01]\d|2[0-3]):([0-5]\d))",
    re.ASCII,
)
#: A JSON number, and a fraction with a trailing zero.
_DIGITS = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][-+]?\d+)?", re.ASCII)
_ENDS_IN_ZERO = re.compile(r"\.\d+0$", re.ASCII)
_LONE = re.compile("[\ud800-\udfff]")


class Text(str):
    """A function's answer that is no JSON."""

    __slots__ = ()


class Numeral(Text):
    """A function's answer that is a number with more digits than JSON needs, such as ``3.10``.

    It is a text unless a number is required.
    """

    __slots__ = ()


def read(text: str) -> Any:
    """Parse a whole body as `parse` does, without losing digits of a number.

    A number outside Python's range becomes a `Text`; a number with more digits than its float
    becomes a `Numeral`.
    """
    digits = text.strip()
    is_digits = _DIGITS.fullmatch(digits) is not None
    try:
        value = parse(text)
    except StatesError:
        if is_digits:
            return Text(text)
        raise
    if is_digits and isinstance(value, float) and _is_longer(digits, value):
        return Numeral(digits)
    return value


def _is_longer(digits: str, value: float) -> bool:
    """Whether `digits` have trailing zeros, or more digits than the float `value` holds."""
    if _ENDS_IN_ZERO.search(digits):
        return True
    mantissa = digits.lower().partition("e")[0]
    shown = len(mantissa.replace(".", "").lstrip("-0"))
    if shown <= sys.float_info.dig:
        return False
    return not value or Decimal(digits) != Decimal(repr(value))


def parse(text: str) -> Any:
    """Parse strict JSON; return any other text, such as NaN, as a `Text`.

    In the text, lone surrogates stand for bytes that are not UTF-8: such a text is no JSON.

    Raises StatesError, ``States.Runtime``, for JSON beyond the limits: nested more than
    `MOST_LEVELS` deep, an exponent above a float's, or an integer with more digits than Python
    reads.
    """
    if not _is_utf8(text):
        return Text(text)
    try:
        value = _DECODER.decode(text)
    except json.JSONDecodeError:
        return Text(text)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        return _refused_number(text, error)
    if text.count("[") + text.count("{") > MOST_LEVELS and _is_too_deep(value):
        raise _too_deep()
    return value


def decoded(text: str, start: int) -> tuple[Any, int]:
    """Parse the JSON value at position `start`; return it and the position after it.

    Raises ValueError if there is no value, and StatesError as `parse` does.
    """
    try:
        value, end = _DECODER.raw_decode(text, start)
    except RecursionError:
        raise _too_deep() from None
    brackets = text.count("[", start, end) + text.count("{", start, end)
    if brackets > MOST_LEVELS and _is_too_deep(value):
        raise _too_deep()
    return value, end


def dump(value: Any, most: float = math.inf) -> str:
    """Encode `value` as compact JSON; a `Text` stays as it is. Lone surrogates are escaped.

    Raises StatesError: ``States.DataLimitExceeded`` if the text would exceed about `most`
    characters, which a small request can cause as values share parts; ``States.Runtime`` if the
    value is nested too deep, has a number that JSON or Python lacks, or a `Text` that is not UTF-8.
    """
    if isinstance(value, Text):
        return str(value)
    try:
        if most < math.inf and (size := size_of(value)) > most:
            cause = f"a value of about {size} bytes, and {most} are the most that a wrap handles"
            raise StatesError("States.DataLimitExceeded", cause)
    except RecursionError:
        raise _too_deep() from None
    text = _encoded(value)
    if not _is_utf8(text) and _has_bytes(value):
        cause = "an answer that is not UTF-8 cannot be part of JSON: encode it, in base64, say"
        raise StatesError("States.Runtime", cause)
    return _escaped(text)


def _encoded(value: Any) -> str:
    try:
        return _ENCODER.encode(value)
    except RecursionError:
        raise _too_deep() from None
    except ValueError as error:
        raise StatesError("States.Runtime", f"a value is no JSON: {error}") from None


def _escaped(text: str) -> str:
    """Return JSON with lone surrogates escaped."""
    return text if text.isascii() else _LONE.sub(lambda half: f"\\u{ord(half[0]):04x}", text)


def _is_utf8(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _has_bytes(value: Any) -> bool:
    """Whether a `Text` in `value` has bytes that are not UTF-8."""
    if isinstance(value, dict | list):
        return any(map(_has_bytes, value.values() if isinstance(value, dict) else value))
    return isinstance(value, Text) and not _is_utf8(value)


def size_of(value: Any, most: float = math.inf) -> int:
    """Return the approximate JSON length of `value`, or any number above `most` if it is longer.

    Values share parts, so the length can exceed any memory.
    """
    return _size(value, {}, most)


def shown(value: Any) -> str:
    """Return the beginning of `value` for a message."""
    try:
        if isinstance(value, dict | list) and size_of(value, _LONGEST_SHOWN) > _LONGEST_SHOWN:
            return f"{'an object' if isinstance(value, dict) else 'an array'} that is large"
    except RecursionError:
        return "a value that is nested too deep"
    return value[:60] if isinstance(value, Text) else _escaped(_encoded(value))[:60]


def _size(value: Any, known: dict[int, int], most: float) -> int:
    """Compute `size_of`; `known` caches sizes of shared parts."""
    if isinstance(value, str):
        return len(value) + 2
    if not isinstance(value, dict | list):
        return _NUMBER
    size = known.get(id(value))
    if size is None:
        look()
        parts = value.values() if isinstance(value, dict) else value
        size = 2 + len(value)
        if isinstance(value, dict):
            size += sum(map(len, value)) + 3 * len(value)
        for each in parts:
            if size > most:
                break
            size += _size(each, known, most - size)
        known[id(value)] = size
    return size


def _is_too_deep(value: Any) -> bool:
    """Whether `value` is nested more than `MOST_LEVELS` deep."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_LEVELS):
        look()
        level = [
            each
            for holder in level
            for each in (holder.values() if type(holder) is dict else holder)
            if type(each) is dict or type(each) is list
        ]
        if not level:
            break
    return bool(level)


def _too_deep() -> StatesError:
    return StatesError("States.Runtime", f"a value is nested more than {MOST_LEVELS} levels deep")


def _refused_number(text: str, error: ValueError) -> Text:
    """Return a text with a number outside Python's range as a `Text`; raise if it is JSON."""
    try:
        json.loads(text, parse_int=str, parse_float=str, parse_constant=_refused)
    except ValueError:
        return Text(text)
    except RecursionError:
        raise _too_deep() from None
    raise StatesError("States.Runtime", f"a number is too large: {error}") from None


def is_number(value: Any) -> bool:
    """Whether `value` is a JSON number; true and false are not, though they are Python ints."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def number_of(value: Any) -> int | float | None:
    """Return a number, also of a `Numeral`; None for other values."""
    if isinstance(value, Numeral):
        return float(value)
    return value if is_number(value) else None


def identity(value: Any) -> Hashable:
    """Return a key that is equal for two values only if they are equal in JSON; 1 equals 1.0."""
    look()
    if isinstance(value, bool):
        return bool, value
    if isinstance(value, dict):
        return dict, frozenset((name, identity(each)) for name, each in value.items())
    if isinstance(value, list):
        return list, tuple(map(identity, value))
    return value  # type: ignore[no-any-return]  # None, a number or a str


def instant(value: Any) -> Fraction | None:
    """Return a timestamp in seconds since 1970; None if `value` is no timestamp.

    A timestamp is a string of RFC 3339 with an upper-case T, and an upper-case Z or an offset. A
    leap second equals the second after it.
    """
    found = _TIMESTAMP.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    *fields, second = map(int, found.groups()[:6])
    if second > 60:
        return None
    try:
        minute = datetime(*fields, tzinfo=UTC)  # type: ignore[misc, arg-type]
    except ValueError:
        return None
    fraction, sign, hours, minutes = found.groups()[6:]
    elapsed = minute - _EPOCH
    seconds = Fraction(elapsed.days * 86400 + elapsed.seconds + second)
    if fraction:
        seconds += Fraction(f"0{fraction}")
    offset = (int(hours) * 60 + int(minutes)) * 60 if sign else 0
    return seconds + offset if sign == "-" else seconds - offset


def _refused(constant: str) -> None:
    raise ValueError(constant)


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"{digits[:60]} is beyond what a float holds")
    return number


_DECODER = json.JSONDecoder(parse_constant=_refused, parse_float=_finite)
_ENCODER = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))

"""Intrinsic functions: ``States.Format('Order {}', $.id)`` and the seventeen others.

Where AWS's pages say more than the specification (limits, rounding, the end of MathRandom), this
goes by them.
"""

from __future__ import annotations

import base64
import hashlib
import inspect
import math
import random
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

from .errors import StatesError
from .paths import check_path, evaluate
from .values import Text, dump, identity, is_number, parse

#: Most functions in one field, most elements of a range, and most characters to encode or hash.
_MOST_CALLS, _MOST_ELEMENTS, _MOST_CHARACTERS = 10, 1000, 10_000
_HASHES = {
    "MD5": hashlib.md5,
    "SHA-1": hashlib.sha1,
    "SHA-256": hashlib.sha256,
    "SHA-384": hashlib.sha384,
    "SHA-512": hashlib.sha512,
}
_RESERVED = "'{}\\"
_FUNCTION = re.compile(r"([A-Za-z0-9._]+)\(")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
#: A number or a constant, which are those of JSON.
_WORD = re.compile(r"[-+.\w]+", re.ASCII)
_SPACE, _COMMA, _CLOSED = re.compile(r"\s*"), re.compile(r",\s*"), re.compile(r"\)")
#: A part of a path: something quoted, something escaped, or a character.
_IN_PATH = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\\.|.", re.DOTALL)
#: What ends a path outside of its brackets.
_ENDS_PATH = frozenset(",) \t\r\n")
#: Of a literal: an escape, a place that Format fills, or text.
_PIECE = re.compile(r"\\(.)|(\{\})|([^\\{]+|\{)", re.DOTALL)
_KEPT = 4096


class _Path(NamedTuple):
    path: str


class _Literal(NamedTuple):
    """A string: the texts between its ``{}``, which are places only for Format."""

    texts: tuple[str, ...]


class _Constant(NamedTuple):
    value: Any


class _Call(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[_Argument, ...]


_Argument: TypeAlias = "_Path | _Literal | _Constant | _Call"


def call(text: str, data: Any, context: Any) -> Any:
    """What the intrinsic function `text` gives, its paths applied to `data` and `context`.

    Raises StatesError, ``States.IntrinsicFailure``, and ValueError where `text` is none.
    """
    try:
        return _value(_compiled(text), data, context)
    except _Refused as refused:
        cause = f"{text}: {refused}"
    except StatesError as error:
        cause = f"{text}: {error.cause}"
    raise StatesError("States.IntrinsicFailure", cause)


def check_call(text: str) -> None:
    """Raise ValueError, a line, unless `text` is an intrinsic function with its arguments."""
    _compiled(text)


class _Refused(Exception):  # noqa: N818  # never leaves this module
    """Arguments that a function cannot take."""


def _value(argument: _Argument, data: Any, context: Any) -> Any:
    if isinstance(argument, _Path):
        return evaluate(argument.path, data, context)
    if isinstance(argument, _Constant):
        return argument.value
    if isinstance(argument, _Literal):
        return "{}".join(argument.texts)
    function, arguments = argument
    if function is _format and isinstance(arguments[0], _Literal):
        # Its braces that are escaped are no places, which its value does not show any more.
        function, arguments = partial(_filled, arguments[0].texts), arguments[1:]
    return function(*(_value(each, data, context) for each in arguments))


@lru_cache(_KEPT)
def _compiled(text: str) -> _Call:
    parser = _Parser(text)
    made = parser.call()
    if parser.at != len(text):
        raise parser.fault("nothing may follow its )")
    return made


class _Parser:
    """Reads an intrinsic function from its text, from `at` on; raises ValueError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._calls = 0

    def call(self) -> _Call:
        """The function that begins here."""
        found = self._next(_FUNCTION)
        if found is None:
            raise self.fault("a function's name and ( have to be")
        name = found.group(1)
        if name not in _FUNCTIONS:
            raise self.fault(f"{name} is not known; known: {', '.join(_FUNCTIONS)};")
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise self.fault(f"a field may have {_MOST_CALLS} functions, and one more is")
        function, arguments = _FUNCTIONS[name], tuple(self._arguments())
        try:
            inspect.signature(function).bind(*arguments)
        except TypeError as error:
            raise self.fault(f"{name} cannot take these arguments: {error};") from None
        return _Call(function, arguments)

    def _arguments(self) -> Iterator[_Argument]:
        self._next(_SPACE)
        if self._next(_CLOSED):
            return
        while True:
            yield self._argument()
            self._next(_SPACE)
            if self._next(_CLOSED):
                return
            if not self._next(_COMMA):
                raise self.fault("a , or ) has to be")

    def _argument(self) -> _Argument:
        if self.text.startswith("$", self.at):
            return _Path(self._path())
        if found := self._next(_STRING):
            return self._literal(found.group(1))
        if _FUNCTION.match(self.text, self.at):
            return self.call()
        found = self._next(_WORD)
        value = parse(found.group()) if found else Text()
        if isinstance(value, Text):
            raise self.fault("a path, 'string', number, true, false, null or function has to be")
        return _Constant(value)

    def _path(self) -> str:
        start, depth = self.at, 0
        while found := self._next(_IN_PATH):
            depth += {"[": 1, "]": -1}.get(found.group(), 0)
            if depth <= 0 and found.group() in _ENDS_PATH:
                self.at = found.start()
                break
        path = self.text[start : self.at]
        check_path(path)
        return path

    def _literal(self, raw: str) -> _Literal:
        texts = [""]
        for escaped, place, text in _PIECE.findall(raw):
            if place:
                texts.append("")
            elif escaped and escaped not in _RESERVED:
                raise self.fault(f"a string has \\{escaped}, which stands for nothing,")
            else:
                texts[-1] += escaped or text
        return _Literal(tuple(texts))

    def _next(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """What of `pattern` is here, and behind which it goes on."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def fault(self, what: str) -> ValueError:
        """The error that says what is wrong here."""
        return ValueError(
            f"{self.text} is no intrinsic function: {what} at character {self.at + 1}"
        )


# What the functions do. Each takes its arguments' values and raises _Refused.


def _format(template: Any, *values: Any) -> str:
    return _filled(_text(template).split("{}"), *values)


def _filled(texts: Sequence[str], *values: Any) -> str:
    if len(texts) - 1 != len(values):
        raise _Refused(f"there are {len(texts) - 1} {{}} and {len(values)} values for them")
    pairs = zip(texts, [*map(_shown, values), ""], strict=True)
    return "".join(f"{text}{value}" for text, value in pairs)


def _shown(value: Any) -> str:
    """`value` in a text, objects and arrays in the notation of AWS's interpreter."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_shown, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{name}={_shown(each)}' for name, each in value.items())}}}"
    return dump(value)


def _string_to_json(text: Any) -> Any:
    value = parse(_text(text))
    if isinstance(value, Text):
        raise _Refused("the string is no JSON")
    return value


def _json_to_string(value: Any) -> str:
    return dump(value)


def _array(*values: Any) -> list[Any]:
    return list(values)


def _array_partition(array: Any, size: Any) -> list[list[Any]]:
    items, step = _items(array), _integer(size)
    if step < 1:
        raise _Refused("the size of the parts has to be positive")
    return [items[start : start + step] for start in range(0, len(items), step)]


def _array_contains(array: Any, value: Any) -> bool:
    return identity(value) in map(identity, _items(array))


def _array_range(first: Any, last: Any, step: Any) -> list[int]:
    start, end, by = _integer(first), _integer(last), _integer(step)
    if by == 0:
        raise _Refused("the step must not be 0")
    elements = range(start, end + (1 if by > 0 else -1), by)
    if len(elements) > _MOST_ELEMENTS:
        raise _Refused(f"an array may have {_MOST_ELEMENTS} elements, not {len(elements)}")
    return list(elements)


def _array_get_item(array: Any, index: Any) -> Any:
    items, place = _items(array), _integer(index)
    if not 0 <= place < len(items):
        raise _Refused(f"there is no element {place} of {len(items)}")
    return items[place]


def _array_length(array: Any) -> int:
    return len(_items(array))


def _array_unique(array: Any) -> list[Any]:
    first: dict[Any, Any] = {}
    for item in _items(array):
        first.setdefault(identity(item), item)
    return list(first.values())


def _base64_encode(text: Any) -> str:
    return base64.b64encode(_bytes(_short(_text(text)))).decode("ascii")


def _base64_decode(text: Any) -> str:
    try:
        return base64.b64decode(_short(_text(text)), validate=True).decode()
    except ValueError as error:
        raise _Refused(f"the string is no base64 of UTF-8: {error}") from None


def _hash(data: Any, algorithm: Any) -> str:
    made = _HASHES.get(_text(algorithm))
    if made is None:
        raise _Refused(f"the algorithm has to be one of {', '.join(_HASHES)}")
    text = _short(data if isinstance(data, str) else dump(data))
    return made(_bytes(text), usedforsecurity=False).hexdigest()


def _json_merge(first: Any, second: Any, deep: Any) -> dict[str, Any]:
    if not isinstance(deep, bool):
        raise _Refused("the third argument has to be true or false")
    return _merged(_object(first), _object(second), deep)


def _merged(first: dict[str, Any], second: dict[str, Any], deep: bool) -> dict[str, Any]:
    merged = first | second
    if deep:
        for name in first.keys() & second.keys():
            if isinstance(first[name], dict) and isinstance(second[name], dict):
                merged[name] = _merged(first[name], second[name], deep)
    return merged


def _math_random(start: Any, end: Any, seed: Any = None) -> int:
    low, high = _integer(start), _integer(end)
    if low >= high:
        raise _Refused("the end, which is exclusive, has to be greater than the start")
    source = random.Random(None if seed is None else _integer(seed))  # noqa: S311  # no secret
    return source.randrange(low, high)


def _math_add(first: Any, second: Any) -> int:
    numbers = _integer(first), _integer(second)
    if not all(-(2**31) <= number < 2**31 for number in numbers):
        raise _Refused("numbers have to be from -2147483648 to 2147483647")
    return sum(numbers)


def _string_split(text: Any, delimiters: Any) -> list[str]:
    """What is between the delimiters, each a character; nothing of what is between two in a row."""
    around = f"[{re.escape(_text(delimiters))}]"
    parts = re.split(around, _text(text)) if delimiters else [_text(text)]
    return [part for part in parts if part]


def _uuid() -> str:
    return str(uuid.uuid4())


def _text(value: Any) -> str:
    return value if isinstance(value, str) else _wrong("a string", value)


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else _wrong("an array", value)


def _object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else _wrong("an object", value)


def _integer(value: Any) -> int:
    """The nearest integer, of two that are as near the greater one."""
    if not is_number(value):
        _wrong("a number", value)
    below = math.floor(value)
    return below + (value - below >= 0.5)


def _short(text: str) -> str:
    if len(text) > _MOST_CHARACTERS:
        raise _Refused(f"a string may have {_MOST_CHARACTERS} characters, not {len(text)}")
    return text


def _bytes(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise _Refused(f"the string has no UTF-8: {error}") from None


def _wrong(kind: str, value: Any) -> Any:
    raise _Refused(f"an argument has to be {kind}, not {dump(value)[:60]}")


_FUNCTIONS: dict[str, Callable[..., Any]] = {
    "States.Format": _format,
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

"""Parses and evaluates calls of intrinsic functions: ``States.Format('Order {}', $.id)``."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias

from .chance import Chance
from .errors import StatesError
from .functions import FUNCTIONS, RANDOM, Refused, filled, format_
from .paths import check_path, evaluate, is_of_context
from .values import Text, parse

#: The limit of function calls in one field.
_MOST_CALLS = 10
_RESERVED = "'{}\\"
_FUNCTION = re.compile(r"([A-Za-z0-9._]+)\(")
_STRING = re.compile(r"'((?:[^'\\]|\\.)*)'", re.DOTALL)
#: A number or constant of JSON.
_WORD = re.compile(r"[-+.\w]+", re.ASCII)
_SPACE, _COMMA, _CLOSED = re.compile(r"\s*"), re.compile(r",\s*"), re.compile(r"\)")
#: A part of a path: a quoted text, an escape, or a character.
_IN_PATH = re.compile(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"|\\.|.", re.DOTALL)
#: Characters that end a path outside of brackets.
_ENDS_PATH = frozenset(",) \t\r\n")
#: A part of a literal: an escape, a placeholder of Format, or text.
_PIECE = re.compile(r"\\(.)|(\{\})|([^\\{]+|\{)", re.DOTALL)
_KEPT = 4096


class _Path(NamedTuple):
    path: str


class _Literal(NamedTuple):
    """A string as the texts between its ``{}``, which only Format treats as placeholders."""

    texts: tuple[str, ...]


class _Constant(NamedTuple):
    value: Any


class _Call(NamedTuple):
    function: Callable[..., Any]
    arguments: tuple[_Argument, ...]


_Argument: TypeAlias = "_Path | _Literal | _Constant | _Call"


def call(text: str, data: Any, context: Any, chance: Chance) -> Any:
    """Evaluate the intrinsic function `text`; its paths refer to `data` and `context`.

    Raises StatesError: ``States.IntrinsicFailure``, and the errors of `evaluate` for its paths.
    Raises ValueError if `text` is not a call.
    """
    try:
        return _value(_compiled(text), data, context, chance)
    except Refused as refused:
        cause = f"{text}: {refused}"
    except StatesError as error:
        raise StatesError(error.name, f"{text}: {error.cause}") from None
    except RecursionError:
        cause = f"{text}: a value is nested too deep"
    raise StatesError("States.IntrinsicFailure", cause)


@lru_cache(_KEPT)
def is_lasting_call(text: str) -> bool:
    """Whether the result depends on the data alone, not on context or random values."""
    return _is_lasting(_compiled(text))


def _is_lasting(argument: _Argument) -> bool:
    if isinstance(argument, _Path):
        return not is_of_context(argument.path)
    if isinstance(argument, _Call):
        return argument.function not in RANDOM and all(map(_is_lasting, argument.arguments))
    return True


def check_call(text: str) -> None:
    """Raise ValueError, a line, unless `text` is a valid call."""
    _compiled(text)


def _value(argument: _Argument, data: Any, context: Any, chance: Chance) -> Any:
    if isinstance(argument, _Path):
        return evaluate(argument.path, data, context)
    if isinstance(argument, _Constant):
        return argument.value
    if isinstance(argument, _Literal):
        return "{}".join(argument.texts)
    function, arguments = argument
    if function is format_ and isinstance(arguments[0], _Literal):
        # In its value, escaped braces would look like placeholders.
        function, arguments = partial(filled, arguments[0].texts), arguments[1:]
    if function in RANDOM:
        function = partial(function, chance)
    values = [_value(each, data, context, chance) for each in arguments]
    try:
        return function(*values)
    except StatesError as error:  # a value cannot be encoded or decoded
        raise Refused(error.cause) from None


@lru_cache(_KEPT)
def _compiled(text: str) -> _Call:
    parser = _Parser(text)
    made = parser.call()
    if parser.at != len(text):
        raise parser.fault("nothing may follow its )")
    return made


class _Parser:
    """Parses a call from position `at` of its text. Raises ValueError."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self._calls = 0

    def call(self) -> _Call:
        found = self._next(_FUNCTION)
        if found is None:
            raise self.fault("a function's name and ( are missing")
        name = found.group(1)
        if name not in FUNCTIONS:
            raise self.fault(f"{name} is not known")
        self._calls += 1
        if self._calls > _MOST_CALLS:
            raise self.fault(f"a field may have {_MOST_CALLS} functions, not more")
        function, arguments = FUNCTIONS[name], tuple(self._arguments())
        try:
            inspect.signature(function).bind(*(None,) * (function in RANDOM), *arguments)
        except TypeError as error:
            raise self.fault(f"{name} cannot take these arguments ({error})") from None
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
                raise self.fault("a , or ) is missing")

    def _argument(self) -> _Argument:
        if self.text.startswith("$", self.at):
            return _Path(self._path())
        if found := self._next(_STRING):
            return self._literal(found.group(1))
        if _FUNCTION.match(self.text, self.at):
            return self.call()
        found = self._next(_WORD)
        try:
            value = parse(found.group()) if found else Text()
        except StatesError as error:
            raise self.fault(error.cause) from None
        if isinstance(value, Text):
            raise self.fault("a path, 'string', number, true, false, null or function is missing")
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
                raise self.fault(f"a string has \\{escaped}, which stands for nothing")
            else:
                texts[-1] += escaped or text
        return _Literal(tuple(texts))

    def _next(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Match `pattern` at the current position, and move behind the match."""
        found = pattern.match(self.text, self.at)
        self.at = found.end() if found else self.at
        return found

    def fault(self, what: str) -> ValueError:
        return ValueError(
            f"{self.text!r} is no intrinsic function: {what} at character {self.at + 1}"
        )

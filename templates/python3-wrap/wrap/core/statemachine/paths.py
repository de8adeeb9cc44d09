"""Evaluates JSONPath, and puts results at reference paths.

A definite path (``$.a[0]``) selects one value, which must exist. An indefinite path (``$.a[*].b``,
``$..b``, ``$.a[1:]``, ``$.a[?(@.b > 1)]``) selects a list. As on AWS, the list is empty if the
beginning of the path does not exist. Several names at the end (``$['a','b']``) select an object
with the existing fields. ``$$`` begins a path into the context object, ``$name`` into a variable.
"""

from __future__ import annotations

import json
import re
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

from .errors import StatesError
from .filter_words import WORDS
from .regex import Refused
from .values import Text

if TYPE_CHECKING:
    from .indefinite import Indefinite

_NAME = r"(?:[^\s\\.,:?@*()\[\]'\"$]|\\.)+"
_VARIABLE = re.compile(r"\$([^\W\d]\w*)")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
#: A quoted text; without a closing quote, the whole rest, which avoids quadratic time.
_QUOTED_OR_OPEN = rf"{_QUOTED}|['\"].*"
_STEP = re.compile(
    rf"\.(?P<name>{_NAME})|\.?\[\s*(?:(?P<index>-?\d+)|(?P<quoted>{_QUOTED}))\s*\]", re.DOTALL
)
#: A quoted text; a dot before a bracket, which Jayway allows and RFC 9535 does not; or a name after
#: two dots, which the library could mistake for an operator.
_DOTTED = re.compile(rf"({_QUOTED_OR_OPEN})|(?<!\.)\.(?=\[)|(?<=\.\.)([\w-]+)", re.DOTALL)
#: In a filter: a quoted text, a regular expression, a path, or a word outside of paths.
_FILTERED = re.compile(
    rf"(?P<kept>{_QUOTED_OR_OPEN}|(?<=~)\s*/(?:[^/\\]|\\.)*/\w*|[@$][\w.*-]*|[.\]][\w.*-]+)"
    r"|(?P<word>(?<![\w.-])[^\W\d][\w-]*+)(?!\s*\()",
    re.DOTALL,
)
#: The reserved words of filters.
_WORDS = frozenset(
    [
        *("and", "or", "not", "undefined", "missing", *WORDS),
        *("true", "false", "null", "nil", "none", "True", "False", "Null", "Nil", "None"),
    ]
)
_SEVERAL = re.compile(rf"\[\s*(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))+\s*\]$", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
#: The cache size of compiled paths; a workflow has far fewer.
_KEPT = 4096


def evaluate(path: str, data: Any, context: Any) -> Any:
    """Return the value or list that `path` selects in `data` or `context`, without copying.

    A path to variables needs a `Context`. Raises StatesError: ``States.Runtime`` if nothing is
    found, ``States.ParameterPathFailure`` if the path cannot be applied. Raises ValueError for an
    invalid path.
    """
    compiled = _compiled(path)
    value = root = compiled.source.root(data, context)
    rest = compiled.rest
    try:
        if rest is not None and rest.path is not None:
            return rest.found(rest.path, root)
        for key in compiled.keys:
            holder: type[Any] = dict if isinstance(key, str) else list
            if not isinstance(value, holder):
                raise KeyError(key)
            value = value[key]
        return value if rest is None else rest.picked(value)
    except (KeyError, IndexError):
        where = compiled.source.value
        if isinstance(root, Text):
            where = "the input, which is no JSON"
        raise StatesError("States.Runtime", f"path {path} finds nothing in {where}") from None
    except (RecursionError, Refused) as error:
        cause = f"path {path} cannot be applied: {error}"
        raise StatesError("States.ParameterPathFailure", cause) from error


def put(path: str, data: Any, value: Any) -> Any:
    """Return a copy of `data` with `value` at the reference path.

    Missing objects on the way are created; elements of arrays must exist. Raises StatesError,
    ``States.ResultPathMatchFailure``, if the path does not fit `data`.
    """
    keys = check_result_path(path)
    try:
        return _put(keys, data, value)
    except (TypeError, IndexError):
        cause = f"path {path} does not fit what the result would be put into"
        raise StatesError("States.ResultPathMatchFailure", cause) from None


def _put(keys: tuple[str | int, ...], data: Any, value: Any) -> Any:
    if not keys:
        return value
    key, *after = keys
    holder: type[Any] = dict if isinstance(key, str) else list
    if not isinstance(data, holder):
        raise TypeError(data)
    copy: Any = holder(data)
    before = copy.get(key, {}) if holder is dict else copy[key]
    copy[key] = _put(tuple(after), before, value)
    return copy


def is_of_context(path: str) -> bool:
    return _compiled(path).source is _Source.CONTEXT


def is_definite(path: str) -> bool:
    """Whether the path selects one value, not a list."""
    rest = _compiled(path).rest
    return rest is None or rest.path is None


def check_path(path: str) -> None:
    """Raise ValueError, a line, for an invalid path."""
    _compiled(path)


def check_reference_path(path: str) -> None:
    """Raise ValueError, a line, unless the path consists of names and indices from 0 on."""
    _reference(path)


def check_result_path(path: str) -> tuple[str | int, ...]:
    """Return the names and indices of a reference path into the data. Raises ValueError, a line."""
    compiled = _reference(path)
    if compiled.source is not _Source.DATA:
        raise ValueError(f"{path!r} is in {compiled.source.value}, where no result can be put")
    return compiled.keys


def _reference(path: str) -> _Compiled:
    compiled = _compiled(path)
    if compiled.rest is not None or any(isinstance(k, int) and k < 0 for k in compiled.keys):
        raise ValueError(f"{path!r} is no reference path: only names and indices from 0 on may be")
    return compiled


class _Rest(NamedTuple):
    """The end of a path: an indefinite path, a list of names, or both."""

    path: Indefinite | None
    names: tuple[str, ...]

    def found(self, path: Indefinite, root: Any) -> list[Any]:
        # The library would parse a string, and a number has no parts.
        found = path.found(root) if isinstance(root, dict | list) else []
        if not self.names:
            return found
        return [self.picked(each) for each in found if isinstance(each, dict)]

    def picked(self, value: Any) -> dict[str, Any]:
        """Return the fields of `value` with these names. Raises KeyError unless it is an object."""
        if not isinstance(value, dict):
            raise KeyError(self.names)
        return {name: value[name] for name in self.names if name in value}


class _Source(Enum):
    """The document that a path refers to, as messages call it."""

    DATA = "the input"
    CONTEXT = "the context object"
    VARIABLES = "the variables"

    def root(self, data: Any, context: Any) -> Any:
        if self is _Source.DATA:
            return data
        return context if self is _Source.CONTEXT else context.variables


class _Compiled(NamedTuple):
    """A path: the keys of its definite beginning, and its rest."""

    source: _Source
    keys: tuple[str | int, ...]
    rest: _Rest | None


@lru_cache(_KEPT)
def _compiled(path: str) -> _Compiled:
    path = path.rstrip(" ")  # as Jayway does; published machines need it
    if not path.startswith("$"):
        raise ValueError(f"{path!r} is no path: it has to begin with $")
    source, keys, at = _beginning(path)
    if path[at:] and path[at] not in ".[":
        raise ValueError(f"{path} is no path: a . or [ has to follow {path[:at]}")
    while step := _STEP.match(path, at):
        at = step.end()
        name, index, quoted = step.group("name", "index", "quoted")
        keys.append(int(index) if index else _unescaped(name) if name else _unquoted(quoted))
    rest = _rest(path, keys, path[at:]) if path[at:] else None
    return _Compiled(source, tuple(keys), rest)


def _beginning(path: str) -> tuple[_Source, list[str | int], int]:
    """Return a path's document, its first keys, and the position after them."""
    if variable := _VARIABLE.match(path):
        return _Source.VARIABLES, [variable.group(1)], variable.end()
    if path.startswith("$$"):
        return _Source.CONTEXT, [], 2
    return _Source.DATA, [], 1


def _rest(path: str, keys: list[str | int], rest: str) -> _Rest:
    names: tuple[str, ...] = ()
    rest = _DOTTED.sub(_undotted, rest)
    if "[?" in rest:
        rest = _FILTERED.sub(_quoted, rest)
    if several := _SEVERAL.search(rest):
        names = tuple(_unquoted(each) for each in re.findall(_QUOTED, several.group()))
        rest = rest[: several.start()]
    if not rest:
        return _Rest(None, names)
    # A filter may refer to the root, so the library evaluates the whole path in its own notation.
    beginning = "".join(f"[{json.dumps(key, ensure_ascii=False)}]" for key in keys)
    from .indefinite import Indefinite  # a slow import that most workflows do not need

    try:
        return _Rest(Indefinite(f"${beginning}{rest}"), names)
    except ValueError as error:
        raise ValueError(f"{path!r} is no path: {error}") from None


def _undotted(found: re.Match[str]) -> str:
    kept, name = found.groups()
    return f"['{name}']" if name else kept or ""


def _quoted(found: re.Match[str]) -> str:
    """Quote a word of a filter: published machines compare with ``Receipt``, unquoted."""
    word = found.group("word")
    return found.group() if word is None or word in _WORDS else f"'{word}'"


def _unquoted(quoted: str) -> str:
    """Return the name in quotes. AWS reads a backslash before the other quote as a character."""
    return _unescaped(quoted[1:-1], '"' if quoted[0] == "'" else "'")


def _unescaped(name: str, other: str = "") -> str:
    if "\\" not in name:
        return name

    def meant(found: re.Match[str]) -> str:
        code, character = found.groups()
        if character == other:
            return found.group()
        return chr(int(code, 16)) if code else _CONTROLS.get(character, character)

    # A pair of surrogates is one character.
    return _ESCAPE.sub(meant, name).encode("utf-16", "surrogatepass").decode("utf-16")

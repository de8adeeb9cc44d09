"""Paths: what they select of a value, and where reference paths put a result.

A definite path (``$.a[0]``) selects one value, which has to exist. Any other (``$.a[*].b``,
``$..b``, ``$.a[1:]``, ``$.a[?(@.b > 1)]``) gives the list of what it selects, which is empty if
its beginning does not exist, as on AWS. Several names at the end (``$['a','b']``) give an object of
those that there are. Paths that begin with ``$$`` are of the context object, and those that begin
with ``$name`` of a variable.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from enum import Enum
from functools import lru_cache
from typing import Any, NamedTuple, cast

from jsonpath import JSONPath, JSONPathEnvironment, JSONPathMatch
from jsonpath.exceptions import JSONPathError, JSONPathRecursionError, JSONPathSyntaxError
from jsonpath.filter import BaseExpression, InfixExpression, IntegerLiteral, RegexLiteral
from jsonpath.function_extensions import Match, Search
from jsonpath.lex import Lexer
from jsonpath.match import NodeList
from jsonpath.parse import Parser
from jsonpath.segments import JSONPathChildSegment, JSONPathRecursiveDescentSegment, JSONPathSegment
from jsonpath.selectors import Filter, JSONPathSelector
from jsonpath.stream import TokenStream
from jsonpath.token import TOKEN_IN, TOKEN_LG, TOKEN_RE_FLAGS

from .errors import StatesError
from .filter_words import WORDS
from .limit import look
from .regex import Refused, Regex, regex_or_none
from .values import Text, identity

_NAME = r"(?:[^\s\\.,:?@*()\[\]'\"$]|\\.)+"
_VARIABLE = re.compile(r"\$([^\W\d]\w*)")
_QUOTED = r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\""
#: Something quoted; without its end, all that is left: else each quote in it would be looked at.
_QUOTED_OR_OPEN = rf"{_QUOTED}|['\"].*"
_STEP = re.compile(
    rf"\.(?P<name>{_NAME})|\.?\[\s*(?:(?P<index>-?\d+)|(?P<quoted>{_QUOTED}))\s*\]", re.DOTALL
)
#: A dot before a bracket, which Jayway allows and RFC 9535 does not; a name after two dots, which
#: the library takes for an operator if it is one of its words; or something quoted.
_DOTTED = re.compile(rf"({_QUOTED_OR_OPEN})|(?<!\.)\.(?=\[)|(?<=\.\.)([\w-]+)", re.DOTALL)
#: In a filter: something quoted, a regular expression, a path, or a word that is none of a path.
_FILTERED = re.compile(
    rf"(?P<kept>{_QUOTED_OR_OPEN}|(?<=~)\s*/(?:[^/\\]|\\.)*/\w*|[@$][\w.*-]*|[.\]][\w.*-]+)"
    r"|(?P<word>(?<![\w.-])[^\W\d][\w-]*+)(?!\s*\()",
    re.DOTALL,
)
#: The words that mean something in a filter.
_WORDS = frozenset(
    [
        *("and", "or", "not", "undefined", "missing", *WORDS),
        *("true", "false", "null", "nil", "none", "True", "False", "Null", "Nil", "None"),
    ]
)
_SEVERAL = re.compile(rf"\[\s*(?:{_QUOTED})(?:\s*,\s*(?:{_QUOTED}))+\s*\]$", re.DOTALL)
_ESCAPE = re.compile(r"\\(?:u([0-9a-fA-F]{4})|(.))", re.DOTALL)
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
#: Compiled paths that are kept; a workflow has far fewer.
_KEPT = 4096


def evaluate(path: str, data: Any, context: Any) -> Any:
    """What `path` selects of `data`, or of `context`: parts, which are not copied.

    A path to variables needs a `Context`. Raises StatesError: ``States.Runtime`` if it finds
    nothing, ``States.ParameterPathFailure`` if it cannot be applied. Raises ValueError if it is no
    path.
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
    except (JSONPathError, RecursionError, Refused) as error:
        cause = f"path {path} cannot be applied: {error}"
        raise StatesError("States.ParameterPathFailure", cause) from error


def put(path: str, data: Any, value: Any) -> Any:
    """`data` with `value` where the reference path says; `data` itself stays as it is.

    Objects that are missing on the way are made; elements of arrays have to be there. Raises
    StatesError, ``States.ResultPathMatchFailure``, where it cannot be put there.
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
    """Whether it selects something of the context object."""
    return _compiled(path).source is _Source.CONTEXT


def is_definite(path: str) -> bool:
    """Whether it selects one value, and not a list of them."""
    rest = _compiled(path).rest
    return rest is None or rest.path is None


def check_path(path: str) -> None:
    """Raise ValueError, a line, unless it is a path."""
    _compiled(path)


def check_reference_path(path: str) -> None:
    """Raise ValueError, a line, unless it is a path that can select one value only."""
    _reference(path)


def check_result_path(path: str) -> tuple[str | int, ...]:
    """The names and indices of a reference path into the data, else ValueError, a line."""
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
    """What an indefinite path selects, or the names that a path ends with, or both."""

    path: JSONPath | None
    names: tuple[str, ...]

    def found(self, path: JSONPath, root: Any) -> list[Any]:
        """What the indefinite `path` selects of `root`."""
        # The library would parse a string, and a number has no parts.
        found = _found(path, root) if isinstance(root, dict | list) else []
        if not self.names:
            return found
        return [self.picked(each) for each in found if isinstance(each, dict)]

    def picked(self, value: Any) -> dict[str, Any]:
        """The fields of `value` that have the names. Raises KeyError if it is no object."""
        if not isinstance(value, dict):
            raise KeyError(self.names)
        return {name: value[name] for name in self.names if name in value}


class _Match(JSONPathMatch):
    """Keeps neither its path nor its children.

    A path is made anew for each value. Children refer to their parents: data in such a circle
    stays until a collection.
    """

    __slots__ = ()

    def new_child(self, obj: object, key: int | str) -> JSONPathMatch:
        return _match(obj, self.root)

    def add_child(self, *children: JSONPathMatch) -> None:
        pass


def _found(path: JSONPath, root: Any) -> list[Any]:
    """What `path` selects of `root`, as the library's ``findall`` has it."""
    matches: Iterable[JSONPathMatch] = [_match(root, root)]
    for segment in path.segments:
        matches = segment.resolve(matches)
    return [match.obj for match in matches]


def _match(value: Any, root: Any) -> _Match:
    return _Match(filter_context={}, obj=value, parent=None, path="", parts=(), root=root)


class _Lexer(Lexer):
    """Knows the operators that Jayway has and RFC 9535 has not: ``=~``, and words."""

    def compile_strict_rules(self) -> re.Pattern[str]:
        rules = self.compile_rules()
        words = rules.pattern.replace(f"<{TOKEN_IN}>in", f"<{TOKEN_IN}>(?:{'|'.join(WORDS)})")
        return re.compile(words, rules.flags)


class _Children(JSONPathChildSegment):
    """Looks at the time for each value that it selects."""

    def resolve(self, nodes: Iterable[JSONPathMatch]) -> Iterable[JSONPathMatch]:
        for match in super().resolve(nodes):
            look()
            yield match


class _Descendants(JSONPathRecursiveDescentSegment):
    """Looks at the time for each value that it comes upon."""

    def _visit(self, node: JSONPathMatch, depth: int = 1) -> Iterable[JSONPathMatch]:
        if depth > self.env.max_recursion_depth:
            raise JSONPathRecursionError("it leads too deep", token=self.token)
        yield node
        held = node.obj
        parts = held.values() if isinstance(held, dict) else held if isinstance(held, list) else ()
        for part in parts:
            look()
            if isinstance(part, dict | list):
                yield from self._visit(_match(part, node.root), depth + 1)


class _Parser(Parser):
    """Makes segments that look at the time, regular expressions of RE2, and whole numbers exact."""

    def parse_query(self, stream: TokenStream) -> Iterable[JSONPathSegment]:
        for segment in super().parse_query(stream):
            descends = isinstance(segment, JSONPathRecursiveDescentSegment)
            limited = _Descendants if descends else _Children
            yield limited(env=segment.env, token=segment.token, selectors=segment.selectors)

    def parse_infix_expression(self, stream: TokenStream, left: BaseExpression) -> BaseExpression:
        token = stream.current()
        if token.kind == TOKEN_LG:
            raise JSONPathSyntaxError("<> is no operator: use !=", token=token)
        found = super().parse_infix_expression(stream, left)
        if token.kind == TOKEN_IN and isinstance(found, InfixExpression):
            found.operator = token.value
        return found

    def parse_regex(self, stream: TokenStream) -> BaseExpression:
        token, flags = stream.current(), ""
        if stream.peek().kind == TOKEN_RE_FLAGS:
            stream.next()
            flags = stream.next().value
        try:
            found = Regex(token.value, flags)
        except ValueError as error:
            raise JSONPathSyntaxError(str(error), token=token) from None
        return RegexLiteral(value=cast(re.Pattern[str], found))

    def parse_integer_literal(self, stream: TokenStream) -> BaseExpression:
        digits = stream.current().value
        literal = super().parse_integer_literal(stream)
        return IntegerLiteral(value=int(digits)) if digits.lstrip("-").isdecimal() else literal


class _WholeText(Match):
    """The function ``match`` with RE2."""

    check_cache = staticmethod(regex_or_none)


class _PartOfText(Search):
    """The function ``search`` with RE2."""

    check_cache = staticmethod(regex_or_none)


class _Environment(JSONPathEnvironment):
    """Without the operators that the library has added, which none of these can stand for."""

    lexer_class = _Lexer
    parser_class = _Parser
    pseudo_root_token = filter_context_token = intersection_token = key_token = union_token = ""
    keys_selector_token = keys_filter_token = "\0"  # noqa: S105

    def setup_function_extensions(self) -> None:
        super().setup_function_extensions()
        self.function_extensions |= {"match": _WholeText(), "search": _PartOfText()}

    def compare(self, left: object, operator: str, right: object) -> bool:
        if operator not in WORDS:
            return super().compare(left, operator, right)
        sides = (None if isinstance(each, NodeList) else each for each in (left, right))
        return WORDS[operator](*sides)

    def _eq(self, left: object, right: object) -> bool:
        # Python's 1 is True, also within lists and objects. A NodeList is none of them.
        if {type(left), type(right)} <= {dict, list}:
            return identity(left) == identity(right)
        return super()._eq(left, right)

    def _lt(self, left: object, right: object) -> bool:
        is_ordered = not isinstance(left, bool) and not isinstance(right, bool)
        return is_ordered and super()._lt(left, right)

    def is_truthy(self, obj: object) -> bool:
        look()  # a filter asks it for each value that it tests
        return super().is_truthy(obj)


class _Filter(Filter):
    """Tests an object itself, as Jayway does, where RFC 9535 tests its members."""

    def resolve(self, node: JSONPathMatch) -> Iterable[JSONPathMatch]:
        if isinstance(node.obj, dict):
            node = _match([node.obj], node.root)
        return super().resolve(node)


class _Source(Enum):
    """What a path is of, as messages call it."""

    DATA = "the input"
    CONTEXT = "the context object"
    VARIABLES = "the variables"

    def root(self, data: Any, context: Any) -> Any:
        """The value at which a path begins."""
        if self is _Source.DATA:
            return data
        return context if self is _Source.CONTEXT else context.variables


class _Compiled(NamedTuple):
    """A path: the keys of its definite beginning, and what comes after them."""

    source: _Source
    keys: tuple[str | int, ...]
    rest: _Rest | None


@lru_cache(_KEPT)
def _compiled(path: str) -> _Compiled:
    path = path.rstrip(" ")  # as Jayway does, and published machines have it
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
    """What a path is of, its first keys, and the index of the character that follows."""
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
    # A filter may begin at the root: the library takes the path as a whole, in its own notation.
    beginning = "".join(f"[{json.dumps(key, ensure_ascii=False)}]" for key in keys)
    try:
        compiled = _ENVIRONMENT.compile(f"${beginning}{rest}")
    except (JSONPathError, RecursionError, ValueError, OverflowError) as error:
        raise ValueError(f"{path!r} is no path: {_line(error)}") from None
    assert isinstance(compiled, JSONPath)  # noqa: S101  # else it has operators that there are not
    for segment in compiled.segments:
        if isinstance(segment, _Children):
            segment.selectors = tuple(map(_as_jayway_does, segment.selectors))
    return _Rest(compiled, names)


def _undotted(found: re.Match[str]) -> str:
    kept, name = found.groups()
    return f"['{name}']" if name else kept or ""


def _quoted(found: re.Match[str]) -> str:
    """A word of a filter as a string: published machines compare with ``Receipt``, unquoted."""
    word = found.group("word")
    return found.group() if word is None or word in _WORDS else f"'{word}'"


def _as_jayway_does(selector: JSONPathSelector) -> JSONPathSelector:
    if not isinstance(selector, Filter):
        return selector
    return _Filter(env=selector.env, token=selector.token, expression=selector.expression)


def _line(error: Exception) -> str:
    """The reason alone: the library draws the place below it."""
    return str(error).partition("\n")[0].strip() or type(error).__name__


def _unquoted(quoted: str) -> str:
    """The name in quotes. AWS takes a backslash and the other quote for two characters."""
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


_ENVIRONMENT = _Environment(strict=True)

"""Paths that select several values: the JSONPath library, adapted to Jayway and AWS."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, cast

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

from .filter_words import WORDS
from .limit import look
from .regex import Refused, Regex, regex_or_none
from .values import identity


class Indefinite:
    """A compiled path in the library's notation. Raises ValueError, a line, if it is invalid."""

    def __init__(self, path: str) -> None:
        try:
            compiled = _ENVIRONMENT.compile(path)
        except (JSONPathError, RecursionError, ValueError, OverflowError) as error:
            raise ValueError(_line(error)) from None
        assert isinstance(compiled, JSONPath)  # noqa: S101  # else it has operators that there are not
        for segment in compiled.segments:
            if isinstance(segment, _Children):
                segment.selectors = tuple(map(_as_jayway_does, segment.selectors))
        self._segments = compiled.segments

    def found(self, root: Any) -> list[Any]:
        """Return the selected values of `root`. Raises `Refused`."""
        matches: Iterable[JSONPathMatch] = [_match(root, root)]
        try:
            for segment in self._segments:
                matches = segment.resolve(matches)
            return [match.obj for match in matches]
        except JSONPathError as error:
            raise Refused(str(error)) from error


class _Match(JSONPathMatch):
    """A match without its path and children.

    Building paths takes time, and references between children and parents would keep the data
    until a garbage collection.
    """

    __slots__ = ()

    def new_child(self, obj: object, key: int | str) -> JSONPathMatch:
        return _match(obj, self.root)

    def add_child(self, *children: JSONPathMatch) -> None:
        pass


def _match(value: Any, root: Any) -> _Match:
    return _Match(filter_context={}, obj=value, parent=None, path="", parts=(), root=root)


class _Lexer(Lexer):
    """Recognises Jayway's operators beyond RFC 9535: ``=~``, and words."""

    def compile_strict_rules(self) -> re.Pattern[str]:
        rules = self.compile_rules()
        words = rules.pattern.replace(f"<{TOKEN_IN}>in", f"<{TOKEN_IN}>(?:{'|'.join(WORDS)})")
        return re.compile(words, rules.flags)


class _Children(JSONPathChildSegment):
    """Checks the time limit at each selected value."""

    def resolve(self, nodes: Iterable[JSONPathMatch]) -> Iterable[JSONPathMatch]:
        for match in super().resolve(nodes):
            look()
            yield match


class _Descendants(JSONPathRecursiveDescentSegment):
    """Checks the time limit at each visited value."""

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
    """Builds segments that check the time limit, RE2 expressions, and exact integers."""

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
    """The library without its own extra operators: their tokens are empty or impossible."""

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
    """Applies a filter to an object itself, as Jayway does; RFC 9535 applies it to the members."""

    def resolve(self, node: JSONPathMatch) -> Iterable[JSONPathMatch]:
        if isinstance(node.obj, dict):
            node = _match([node.obj], node.root)
        return super().resolve(node)


def _as_jayway_does(selector: JSONPathSelector) -> JSONPathSelector:
    if not isinstance(selector, Filter):
        return selector
    return _Filter(env=selector.env, token=selector.token, expression=selector.expression)


def _line(error: Exception) -> str:
    """Return the first line of an error; the library draws the position below it."""
    return str(error).partition("\n")[0].strip() or type(error).__name__


_ENVIRONMENT = _Environment(strict=True)

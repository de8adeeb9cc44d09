"""Paths that select several values: the library for them, as Jayway and AWS differ from it."""

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
    """A path in the library's notation. Raises ValueError, a line, if it is none."""

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
        """What it selects of `root`, as the library's ``findall`` has it. Raises `Refused`."""
        matches: Iterable[JSONPathMatch] = [_match(root, root)]
        try:
            for segment in self._segments:
                matches = segment.resolve(matches)
            return [match.obj for match in matches]
        except JSONPathError as error:
            raise Refused(str(error)) from error


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


def _as_jayway_does(selector: JSONPathSelector) -> JSONPathSelector:
    if not isinstance(selector, Filter):
        return selector
    return _Filter(env=selector.env, token=selector.token, expression=selector.expression)


def _line(error: Exception) -> str:
    """The reason alone: the library draws the place below it."""
    return str(error).partition("\n")[0].strip() or type(error).__name__


_ENVIRONMENT = _Environment(strict=True)

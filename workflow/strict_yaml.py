"""Strict YAML: no tags, no duplicate keys, no alias bombs; errors have their line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any, NamedTuple

import yaml

from chiron.workflow.documents import dotted
from chiron.workflow.errors import ChironError
from chiron.workflow.names import shown

#: The most values of a document after expanding aliases: a few lines could expand to millions.
MAX_VALUES = 100_000
_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"


class _Refused(yaml.MarkedYAMLError):
    """An element that YAML allows and this loader refuses; `code` is the ChironError's."""

    def __init__(self, code: str, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.code = code


class _StrictLoader(yaml.SafeLoader):
    """A safe loader that refuses constructs that a reader of the file would not expect."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values: dict[yaml.Node, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        event: yaml.Event = self.peek_event()  # type: ignore[no-untyped-call]
        tag = getattr(event, "tag", None)
        if tag not in (None, "!"):
            raise _Refused("bad-yaml", f"tag {tag}: leave it out", event.start_mark)
        node = super().compose_node(parent, index)
        if isinstance(event, yaml.AliasEvent) and node not in self._values:
            raise _Refused("bad-yaml", f"alias *{event.anchor} is inside itself", event.start_mark)
        if node is not None:
            self._values[node] = 1 + sum(self._values[child] for child in _children(node))
            if self._values[node] > MAX_VALUES:
                problem = f"more than {MAX_VALUES:,} values with the aliases written out"
                raise _Refused("bad-yaml", problem, event.start_mark)
        return node

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        # Checked before construction, which adds merged keys to its own keys.
        node = super().compose_mapping_node(anchor)
        seen: set[str] = set()
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise _Refused("bad-yaml", "a key has to be text", key.start_mark)
            if key.value in seen:
                raise _Refused("duplicate-key", f"key {shown(key.value)} twice", key.start_mark)
            seen.add(key.value)
        return node


def _children(node: yaml.Node) -> Iterator[yaml.Node]:
    if isinstance(node, yaml.SequenceNode):
        yield from node.value
    elif isinstance(node, yaml.MappingNode):
        yield from chain.from_iterable(node.value)


class _TextLoader(_StrictLoader):
    """Keeps scalars such as ``010``, ``1e3`` or ``yes`` as text, like faas-cli."""


class _JsonLoader(_StrictLoader):
    """Parses numbers and booleans as in JSON; other scalars and keys are text."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node = super().compose_mapping_node(anchor)
        for key, _ in node.value:
            if key.tag != _MERGE:
                key.tag = "tag:yaml.org,2002:str"
        return node


def _resolvers(loader: type[_StrictLoader], found: dict[str, tuple[str, str]]) -> None:
    loader.yaml_implicit_resolvers = {}
    for tag, (pattern, first) in found.items():
        loader.add_implicit_resolver(f"tag:yaml.org,2002:{tag}", re.compile(pattern), list(first))


_ANY = {"merge": (r"<<$", "<"), "null": (r"(?:~|null|Null|NULL)$", "~nN")}
_resolvers(_TextLoader, _ANY)
_resolvers(
    _JsonLoader,
    _ANY
    | {
        "bool": (r"(?:true|True|TRUE|false|False|FALSE)$", "tTfF"),
        "int": (r"-?(?:0|[1-9][0-9]*)$", "-0123456789"),
        "float": (
            r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+(?:[eE][-+]?[0-9]+)?|[eE][-+]?[0-9]+)$",
            "-0123456789",
        ),
    },
)
for _loader in (_TextLoader, _JsonLoader):  # an empty scalar is null
    _loader.add_implicit_resolver(_NULL, re.compile("$"), [""])


def _number(_: _JsonLoader, node: yaml.ScalarNode) -> int | float:
    if node.tag.endswith("float"):
        return float(node.value)
    try:
        return int(node.value)
    except ValueError:
        raise _Refused("bad-yaml", "a number with too many digits", node.start_mark) from None


for _kind in ("int", "float"):
    _JsonLoader.add_constructor(f"tag:yaml.org,2002:{_kind}", _number)


def load_yaml(text: str, what: str) -> Any:
    """Return the mappings, lists and strings (or None) of the YAML document `text`, called `what`.

    Raises ``duplicate-key``, or ``bad-yaml`` for invalid YAML, tags and too many aliases; both with
    the line.
    """
    return _loaded(_TextLoader, text, what)[0]


class Lines(dict[str, int]):
    """The first line of each value in a document, from 1, by its path as in errors."""

    def of(self, path: str | None) -> str:
        """Return `path` with the line of its value or, if there is none, of the nearest parent."""
        above = path or ""
        while above and above not in self:
            above = above[: max(above.rfind("."), above.rfind("["), 0)]
        line = f"line {self.get(above, 1)}"
        return f"{line}: {path}" if path else line


class Loaded(NamedTuple):
    """A document, and the lines of its values in its file."""

    value: Any
    lines: Lines


def load_document(text: str, what: str) -> Loaded:
    """Return the document in the YAML `text`, called `what`, restricted to JSON's types.

    Dates, and words such as ``yes``, are text. Raises the errors of `load_yaml`.
    """
    value, node = _loaded(_JsonLoader, text, what)
    lines = Lines()
    _note_lines(node, (), lines)
    return Loaded(value, lines)


def _note_lines(node: yaml.Node | None, path: tuple[str | int, ...], lines: Lines) -> None:
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            place = (*path, key.value)
            lines[dotted(place)] = key.start_mark.line + 1
            _note_lines(value, place, lines)
    elif isinstance(node, yaml.SequenceNode):
        for index, value in enumerate(node.value):
            lines[dotted((*path, index))] = value.start_mark.line + 1
            _note_lines(value, (*path, index), lines)


def _loaded(kind: type[_StrictLoader], text: str, what: str) -> tuple[Any, yaml.Node | None]:
    try:
        loader = kind(text)
        try:
            node = loader.get_single_node()
            return (None if node is None else loader.construct_document(node)), node
        finally:
            loader.dispose()
    except yaml.MarkedYAMLError as error:
        code = error.code if isinstance(error, _Refused) else "bad-yaml"
        mark = error.problem_mark or error.context_mark
        where = f"line {mark.line + 1}: " if mark else ""
        raise ChironError(code, f"{what}, {where}{error.problem or error.context}") from None
    except yaml.YAMLError as error:
        raise ChironError("bad-yaml", f"{what}: {str(error).splitlines()[0]}") from None
    except RecursionError:
        raise ChironError("bad-yaml", f"{what} is nested too deeply") from None


def dump_yaml(value: Any) -> str:
    """Return `value` as block-style YAML, keys in their order, one line per value."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=2**31)

"""YAML as stack files need it: plain text values, no surprises, errors with their line."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import chain
from typing import Any

import yaml

from workflow.errors import ChironError
from workflow.names import shown

#: Values of one document, aliases written out: a few lines of them could stand for millions.
MAX_VALUES = 100_000
_NULL = "tag:yaml.org,2002:null"
_MERGE = "tag:yaml.org,2002:merge"


class _Refused(yaml.MarkedYAMLError):
    """Something that YAML allows and this loader does not; `code` is the ChironError's."""

    def __init__(self, code: str, problem: str, mark: Any) -> None:
        super().__init__(problem=problem, problem_mark=mark)
        self.code = code


class _TextLoader(yaml.SafeLoader):
    """A safe loader that keeps scalars as written.

    faas-cli decodes values such as ``010``, ``1e3`` or ``yes`` into Go strings, which keeps their
    text, so that reading them as YAML numbers and booleans would change them.
    """

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
        # Here and not when it is constructed: by then, merged keys stand beside its own.
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


_TextLoader.yaml_implicit_resolvers = {}
_TextLoader.add_implicit_resolver(_MERGE, re.compile(r"<<$"), ["<"])
_TextLoader.add_implicit_resolver(_NULL, re.compile(r"(?:~|null|Null|NULL|)$"), ["~", "n", "N", ""])


def load_yaml(text: str, what: str) -> Any:
    """The mappings, lists and strings (or None) of the YAML document `text`, called `what`.

    Raises ``duplicate-key``, or ``bad-yaml`` for what is no YAML, for tags and for too many
    aliases; both with the line.
    """
    try:
        # _TextLoader is a SafeLoader.
        return yaml.load(text, Loader=_TextLoader)  # noqa: S506
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
    """`value` as block-style YAML, keys in their order, one line a value."""
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=2**31)

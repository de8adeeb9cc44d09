"""The objects of one execution in one process, and the inputs that are made of them.

A text that parses as strict JSON is JSON, else a string. One predecessor's output is passed on
byte for byte; several become a JSON list joined from their texts, so that no number or key
changes on the way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from wrap.engine import Key, Source

#: Answers up to this many characters are parsed for their content type.
_PARSED = 1 << 16


class Data:
    """Objects by the tasks that gave them, None for the request; joined texts are made once."""

    def __init__(self, objects: Mapping[Key, str]) -> None:
        self._objects = dict(objects)
        self._fragments: dict[Key, str] = {}
        self._joined: dict[tuple[int, ...], str] = {}

    def add(self, objects: Mapping[Key, str]) -> None:
        """Take in more of them."""
        self._objects.update(objects)

    def __getitem__(self, key: Key) -> str:
        return self._objects[key]

    def resolve(self, source: Source) -> str:
        """The text that `source` stands for. Tasks with the same source get the same object."""
        if not isinstance(source, list):
            return self._objects[source]
        key = tuple(source)
        if key not in self._joined:
            self._joined[key] = "[" + ",".join(map(self._fragment, key)) + "]"
        return self._joined[key]

    def _fragment(self, task: Key) -> str:
        if task not in self._fragments:
            text = self._objects[task]
            quoted = text.strip() if is_json(text) else json.dumps(text, ensure_ascii=False)
            self._fragments[task] = quoted
        return self._fragments[task]


def is_json(text: str) -> bool:
    """Whether `text` is strict JSON (NaN and Infinity are not)."""
    try:
        json.loads(text, parse_int=str, parse_constant=_refuse)
    except (ValueError, RecursionError):
        return False
    return True


def reads_as_json(text: str) -> bool:
    """Whether to call an answer JSON: it is, or it is long and begins and ends as JSON does.

    To parse 10 MB would take ten times as long as all else that the wrap does with them.
    """
    if len(text) <= _PARSED:
        return is_json(text)
    ends = text[:_PARSED].lstrip()[:1] + text[-_PARSED:].rstrip()[-1:]
    return ends in ("{}", "[]", '""')


def _refuse(constant: str) -> None:
    raise ValueError(constant)

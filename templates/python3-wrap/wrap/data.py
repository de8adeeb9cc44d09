"""The texts of one request: which task gets what, put together from what others gave.

A text that parses as strict JSON is JSON, else a string. One predecessor's output is passed on
byte for byte; several become a JSON list joined from their texts, so that no number or key
changes on the way.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from wrap.declaration import Source

#: Answers up to this many characters are parsed for their content type.
_PARSED = 1 << 16


class Data:
    """The request's text and the outputs so far; joined texts are made once."""

    def __init__(self, request: str) -> None:
        self._request = request
        self._outputs: dict[int, str] = {}
        self._fragments: dict[int, str] = {}
        self._joined: dict[tuple[int, ...], str] = {}

    def add(self, outputs: Mapping[int, str]) -> None:
        """Take in the outputs of a stage."""
        self._outputs.update(outputs)

    def inputs(self, sources: Mapping[int, Source], tasks: Iterable[int]) -> dict[int, str]:
        """Task -> its input. Tasks with the same source get the same object."""
        return {task: self.resolve(sources[task]) for task in tasks}

    def resolve(self, source: Source) -> str:
        """The text that `source` stands for."""
        if source is None:
            return self._request
        if isinstance(source, int):
            return self._outputs[source]
        key = tuple(source)
        if key not in self._joined:
            self._joined[key] = "[" + ",".join(map(self._fragment, key)) + "]"
        return self._joined[key]

    def _fragment(self, task: int) -> str:
        if task not in self._fragments:
            text = self._outputs[task]
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

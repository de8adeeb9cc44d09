"""How data flows along the edges: the text that a task gets, from the texts that others gave.

A function's output is JSON if it parses as JSON, else a string. One predecessor's output is
passed on byte for byte; several become a JSON list that is put together from their texts, so
that no number or key changes on the way.
"""

from __future__ import annotations

import json
from collections.abc import Mapping

from workflow.errors import ChironError
from workflow.model import Source


def request_text(request: bytes) -> str:
    """The request as the text that functions get; ``bad-request`` where it is none."""
    try:
        return request.decode()
    except UnicodeDecodeError as error:
        message = f"the request is not UTF-8 (byte {error.start}): functions pass on text"
        raise ChironError("bad-request", message) from None


def resolve(source: Source, request: str, outputs: Mapping[str, str]) -> str:
    """The text that `source` stands for, given the request and the outputs so far.

    Examples
    --------
    >>> resolve(("a", "b"), "", {"a": "1", "b": "no JSON"})
    '[1,"no JSON"]'
    """
    if source is None:
        return request
    if isinstance(source, str):
        return outputs[source]
    return "[" + ",".join(_fragment(outputs[name]) for name in source) + "]"


def is_json(text: str) -> bool:
    """Whether `text` is strict JSON (NaN and Infinity are not)."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_int=str, parse_constant=refuse)
    except (ValueError, RecursionError):
        return False
    return True


def _fragment(text: str) -> str:
    return text.strip() if is_json(text) else json.dumps(text, ensure_ascii=False)

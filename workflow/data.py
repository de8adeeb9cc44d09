"""The data flow along edges: a task's input, from the outputs of its predecessors.

A function's output is JSON if it parses as JSON, otherwise a string. A single predecessor's output
is passed on byte for byte. Several outputs become a JSON list assembled from their texts, so that
no number or key changes on the way.

The data are bytes, but represented as `str` here. Bytes that are not UTF-8 become lone surrogates,
as in Python's file names (PEP 383).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self

from chiron.workflow.errors import ChironError
from chiron.workflow.model import NOTHING, Source, Task
from chiron.wrap.values.in_json import InJson, from_json, to_json

#: Flask's default content type of an answer.
_UNSAID = "text/html; charset=utf-8"


class Typed(str):
    """A text with the ``content_type`` that its producer set; empty if it set none."""

    content_type: str

    def __new__(cls, text: str, content_type: str) -> Self:
        made = super().__new__(cls, text)
        made.content_type = "" if content_type == _UNSAID else content_type
        return made


class Request(bytes):
    """The request to a function; ``content_type`` is that of a `Typed` text, otherwise None."""

    content_type: str | None

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, bytes_of(text))
        made.content_type = text.content_type if isinstance(text, Typed) else None
        return made


def text_of(content: bytes) -> str:
    return content.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    """Return the bytes of a text from `text_of`."""
    return text.encode(errors="surrogateescape")


def in_json(text: str) -> InJson:
    """Return the representation of `text` in a JSON document."""
    return to_json(bytes_of(text))


def is_utf8(text: str) -> bool:
    """Return whether `bytes_of(text)` is UTF-8."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def resolve(source: Source, request: str, outputs: Mapping[str, str]) -> str:
    """Return the data of `source`, given the request and the outputs so far.

    Raises ``not-text`` if an output to be joined is not UTF-8, and ``too-deep`` if it is nested
    deeper than Python can read.

    >>> resolve(("a", "b"), "", {"a": "1", "b": "no JSON"})
    '[1,"no JSON"]'
    """
    if source is None:
        return request
    if source == NOTHING:
        return ""
    if isinstance(source, str):
        return outputs[source]
    return "[" + ",".join(_fragment(outputs[name]) for name in source) + "]"


def given_to(task: Task, request: str, outputs: Mapping[str, str]) -> str:
    """Return the request to a task that is called separately, given the outputs so far.

    If it reads streams, this is a JSON object: its ``input``, and its ``streams`` by name.

    Raises the errors of `resolve`.
    """
    given = resolve(task.source, request, outputs)
    if not task.streams:
        return given
    streams = {
        name: in_json(outputs[output]) for name, output in task.streams if output is not None
    }
    return json.dumps({"input": in_json(given), "streams": streams})


def outputs_in(answer: str, task: str, emits: Mapping[str, str]) -> dict[str, str]:
    """Return the outputs by name in a wrap's answer to a client that calls it for `task` alone.

    Args:
        emits: the workflow's names of emitted outputs, by the task's names. If there are any, the
            answer is a JSON object of its ``output`` and the ``emitted`` outputs.

    Raises ``bad-answer``.
    """
    if not emits:
        return {task: answer}
    try:
        told = json.loads(answer)
        return {task: text_of(from_json(told["output"]))} | {
            name: text_of(from_json(told["emitted"][each])) for each, name in emits.items()
        }
    except (ValueError, TypeError, LookupError, RecursionError):
        message = f"{task} has answered without {', '.join(emits)}: deploy it again"
        raise ChironError("bad-answer", message, status=502) from None


def is_json(text: str) -> bool:
    """Return whether `text` is strict JSON; ``too-deep`` if Python cannot read its nesting."""

    def refuse(constant: str) -> None:
        raise ValueError(constant)

    try:
        json.loads(text, parse_int=str, parse_constant=refuse)
    except RecursionError:
        raise ChironError("too-deep", "an output is nested deeper than can be read") from None
    except ValueError:
        return False
    return True


def _fragment(text: str) -> str:
    if not is_utf8(text):
        message = "an output that is joined to a JSON list is not UTF-8: encode it, in base64 say"
        raise ChironError("not-text", message)
    return text.strip() if is_json(text) else json.dumps(text, ensure_ascii=False)

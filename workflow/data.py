"""How data flows along the edges: what a task gets, from what others gave.

A function's output is JSON if it parses as JSON, else a string. One predecessor's output is
passed on byte for byte; several become a JSON list that is put together from their texts, so
that no number or key changes on the way.

What flows are bytes, but is a `str` here: bytes that are no UTF-8 are lone surrogates in it, as
Python has them in file names (PEP 383).
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Self

from chiron.workflow.errors import ChironError
from chiron.workflow.model import NOTHING, Source, Task
from chiron.wrap.values.in_json import InJson, from_json, to_json

#: What Flask calls an answer if the handler does not.
_UNSAID = "text/html; charset=utf-8"


class Typed(str):
    """A text with the ``content_type`` that its giver called it, empty if it called it none."""

    content_type: str

    def __new__(cls, text: str, content_type: str) -> Self:
        made = super().__new__(cls, text)
        made.content_type = "" if content_type == _UNSAID else content_type
        return made


class Request(bytes):
    """What a function is sent; ``content_type`` is that of a `Typed` text, None of others."""

    content_type: str | None

    def __new__(cls, text: str) -> Self:
        made = super().__new__(cls, bytes_of(text))
        made.content_type = text.content_type if isinstance(text, Typed) else None
        return made


def text_of(content: bytes) -> str:
    """`content` as a text."""
    return content.decode(errors="surrogateescape")


def bytes_of(text: str) -> bytes:
    """What `text_of` has made a text of."""
    return text.encode(errors="surrogateescape")


def in_json(text: str) -> InJson:
    """What stands for `text` in a JSON document."""
    return to_json(bytes_of(text))


def is_utf8(text: str) -> bool:
    """Whether `bytes_of` makes UTF-8 of `text`."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def resolve(source: Source, request: str, outputs: Mapping[str, str]) -> str:
    """What `source` stands for, given the request and the outputs so far.

    Raises ``not-text`` and ``too-deep`` where something that is not UTF-8, or is nested deeper than
    Python reads, would have to be joined.

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
    """What a task that is called by itself gets as its request, given the outputs so far.

    Of one that reads streams it is a JSON object: its ``input``, and its ``streams`` by the names
    that it opens them by.

    Raises as `resolve` does.
    """
    given = resolve(task.source, request, outputs)
    if not task.streams:
        return given
    streams = {
        name: in_json(outputs[output]) for name, output in task.streams if output is not None
    }
    return json.dumps({"input": in_json(given), "streams": streams})


def outputs_in(answer: str, task: str, emits: Mapping[str, str]) -> dict[str, str]:
    """The outputs in the answer of a wrap that a client calls for `task` alone, by their names.

    Args:
        emits: what the outputs are called that the task emits, by what it calls them. If there are
            any, the answer is a JSON object of its ``output`` and what it has ``emitted``.

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
    """Whether `text` is strict JSON; ``too-deep`` where Python cannot read that deep."""

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

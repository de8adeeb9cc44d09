"""The headers that every client of ours sends to a function."""

from __future__ import annotations

import msgspec

from chiron.workflow.data import Request

_JSON, _TEXT = "application/json", "text/plain"
#: Sees whether bytes are JSON and makes no values of them.
_READ = msgspec.json.Decoder(msgspec.Raw).decode


def function_headers(body: bytes) -> dict[str, str]:
    """What a function gets with `body` beside the headers of its caller.

    A function may answer with them, and its answers are compared: whoever sends a payload sends
    these. Templates for Node.js refuse a body with the type of JSON that is no object or list.
    A body that another function has answered has the content type of that answer.
    """
    kind = body.content_type if isinstance(body, Request) else None
    if kind is None:
        kind = _JSON if _is_document(body) else _TEXT
    headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "chiron"}
    return headers | ({"Content-Type": kind} if kind else {})


def _is_document(body: bytes) -> bool:
    """Whether `body` is an object or a list in JSON."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        _READ(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True

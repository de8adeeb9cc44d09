"""The headers that all of this project's clients send to a function."""

from __future__ import annotations

import msgspec

from chiron.workflow.data import Request

_JSON, _TEXT = "application/json", "text/plain"
#: The header by which a wrap knows another function's answer without a content type.
_UNTYPED = "X-Chiron-Untyped"
#: Checks that bytes are JSON without creating values.
_READ = msgspec.json.Decoder(msgspec.Raw).decode


def function_headers(body: bytes) -> dict[str, str]:
    """Return the headers sent with `body`, besides those of the caller.

    A function may include them in its answer, and answers are compared, so all clients send the
    same headers. Templates for Node.js refuse JSON that is no object or list. A body that is
    another function's answer keeps the content type of that answer. If that has none, the wrap is
    told so: there an output without a type is not what a client's request without a type is.
    """
    kind = body.content_type if isinstance(body, Request) else None
    if kind is None:
        kind = _JSON if _is_document(body) else _TEXT
    headers = {"Accept": "*/*", "Accept-Encoding": "identity", "User-Agent": "chiron"}
    return headers | ({"Content-Type": kind} if kind else {_UNTYPED: "1"})


def _is_document(body: bytes) -> bool:
    """Return whether `body` is a JSON object or list."""
    if body.lstrip()[:1] not in (b"{", b"["):
        return False
    try:
        _READ(body)
    except (msgspec.DecodeError, RecursionError):
        return False
    return True

"""What a python3-http handler returns, as Flask understands it: body, status, headers."""

from __future__ import annotations

from typing import Any

Answer = tuple[Any, int, list[tuple[str, str]]]


def http_answer(value: Any) -> Answer:
    """The answer of a handler that returned ``{"statusCode", "body", "headers"}`` or None.

    dict and list bodies become JSON, str and bytes are sent as they are, anything else as
    ``str()`` shows it; what is left out is an empty body, 200 and no headers.

    Raises
    ------
    TypeError
        The handler returned something else.
    """
    if value is None:
        return "", 200, []
    if not isinstance(value, dict):
        raise TypeError(
            f"handle(event, context) returned {type(value).__name__}: return a dict with "
            "statusCode, body and headers"
        )
    body = value.get("body", "")
    if not isinstance(body, str | bytes | dict | list):
        body = str(body)
    headers = value.get("headers", [])
    pairs = headers.items() if isinstance(headers, dict) else headers
    return body, value.get("statusCode", 200), [(str(key), str(item)) for key, item in pairs]

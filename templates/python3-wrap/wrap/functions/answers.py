"""Converts a handler's return value as the OpenFaaS templates do before they pass it to Flask."""

from __future__ import annotations

from typing import Any

#: python3-http-debian sends a body of this content type unchanged.
_OCTETS = "application/octet-stream"
_HTTP = ["GET", "PUT", "POST", "PATCH", "DELETE"]
#: Style -> methods that its template serves; others get 405.
METHODS = {"flask": ["GET", "POST"], "http": _HTTP, "http-debian": _HTTP}
#: Style -> endpoint of its template's routes.
ENDPOINTS = {"flask": "main_route", "http": "call_handler", "http-debian": "call_handler"}


def flask_value(style: str, value: Any) -> Any:
    """Return the value that the template of `style` passes to Flask for a handler's `value`.

    python3-flask passes it unchanged. python3-http and python3-http-debian interpret None and dicts
    with ``statusCode``, ``body`` and ``headers``. A dict as the body becomes JSON; any other body
    goes through ``str()``.

    Raises AttributeError, KeyError, as the template does: it answers 500.
    """
    if style == "flask":
        return value
    if value is None:
        return "", 200
    if type(value) is not dict:
        return value
    headers = value.get("headers", [])
    if style == "http-debian" and "headers" in value and headers.get("Content-type") == _OCTETS:
        body = value["body"]
    else:
        body = value.get("body", "")
        if type(body) is not dict:
            body = str(body)
    pairs = list(headers.items()) if type(headers) is dict else headers
    return body, value.get("statusCode", 200), pairs

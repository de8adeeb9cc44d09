"""What the OpenFaaS templates give to Flask of what a handler returned."""

from __future__ import annotations

from typing import Any

#: With this content type, python3-http-debian sends a body as it is.
_OCTETS = "application/octet-stream"
_HTTP = ["GET", "PUT", "POST", "PATCH", "DELETE"]
#: The methods that the template of each style serves; else it is 405.
METHODS = {"flask": ["GET", "POST"], "http": _HTTP, "http-debian": _HTTP}
#: The endpoint of the routes of each template.
ENDPOINTS = {"flask": "main_route", "http": "call_handler", "http-debian": "call_handler"}


def flask_value(style: str, value: Any) -> Any:
    """What the template of `style` gives to Flask where a handler returned `value`.

    python3-flask gives all of it. python3-http and python3-http-debian take None, and a dict with
    ``statusCode``, ``body`` and ``headers``, for themselves: a dict as the body becomes JSON, and
    any other body what ``str()`` makes of it.

    Raises AttributeError, KeyError: the same as in the template: it answers 500.
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

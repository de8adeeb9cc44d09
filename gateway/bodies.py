"""Reads the JSON bodies of the management API."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from gateway.errors import GatewayError


async def read_json(request: web.Request) -> dict[str, Any]:
    """The request's JSON object; raises GatewayError (400) if it is none."""
    try:
        body = await request.json()
    except ValueError as error:
        raise GatewayError("bad-json", f"request body is not JSON: {error}") from error
    if not isinstance(body, dict):
        raise GatewayError("bad-json", "request body is not a JSON object")
    return body


def text_field(body: dict[str, Any], name: str) -> str:
    """A field that must be there and be text; raises GatewayError (400)."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise GatewayError("bad-field", f"{name}: missing, or not text")
    return value

"""/system/secrets: list, create, change and delete secrets; values go in and never come out."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from aiohttp import web

from gateway import names
from gateway.bodies import read_json, text_field
from gateway.errors import GatewayError
from gateway.secret_store import SecretStore


def secret_routes(secrets: SecretStore) -> list[web.RouteDef]:
    """The four verbs over `secrets`."""

    async def listing(request: web.Request) -> web.Response:
        entries = [{"name": name, "namespace": names.NAMESPACE} for name in secrets.names()]
        return web.json_response(entries)

    async def create(request: web.Request) -> web.Response:
        body = await read_json(request)
        secrets.create(_name(body), _value(body))
        return web.Response(status=200)

    async def update(request: web.Request) -> web.Response:
        body = await read_json(request)
        secrets.update(_name(body), _value(body))
        return web.Response(status=200)

    async def delete(request: web.Request) -> web.Response:
        secrets.delete(_name(await read_json(request)))
        return web.Response(status=200)

    return [
        web.get("/secrets", listing),
        web.post("/secrets", create),
        web.put("/secrets", update),
        web.delete("/secrets", delete),
    ]


def _name(body: dict[str, Any]) -> str:
    names.check_namespace(body.get("namespace"))
    return names.secret_name(text_field(body, "name"))


def _value(body: dict[str, Any]) -> bytes:
    """The secret's bytes: `rawValue` in base64, as Go writes bytes, or `value` as text."""
    if body.get("rawValue"):
        try:
            return base64.b64decode(text_field(body, "rawValue"), validate=True)
        except (binascii.Error, ValueError) as error:
            raise GatewayError("bad-field", "rawValue: not base64") from error
    value = body.get("value", "")
    if not isinstance(value, str):
        raise GatewayError("bad-field", "value: not text")
    return value.encode()

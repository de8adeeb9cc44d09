"""The management API below /system: the part of OpenFaaS's REST interface that faas-cli calls."""

from __future__ import annotations

import asyncio
import base64
import json
import platform
from typing import Any

from aiohttp import web
from aiohttp.typedefs import Handler

from chiron.gateway import names
from chiron.gateway.access import Credentials, refuse_cross_site
from chiron.gateway.deployment import Deployment
from chiron.gateway.logs import stream_logs
from chiron.gateway.metrics import Metrics
from chiron.gateway.proxy import PROVIDER, VERSION
from chiron.gateway.registry import Function, Registry
from chiron.workflow.errors import ChironError

_BODY_TIMEOUT_S = 30.0


def system_app(
    registry: Registry, metrics: Metrics, credentials: Credentials | None
) -> web.Application:
    """The application to mount at /system/."""

    @web.middleware
    async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
        """Refuse web pages and requests without the credentials; errors are plain text."""
        try:
            refuse_cross_site(request.method, request.headers.get, secret=credentials is not None)
            if credentials and not credentials.admit(request.headers.get("Authorization")):
                ask = {"WWW-Authenticate": 'Basic realm="Restricted"'}
                return web.Response(status=401, text="invalid credentials\n", headers=ask)
            return await handler(request)
        except ChironError as error:
            return web.Response(status=error.status, text=error.message + "\n")

    api = SystemApi(registry, metrics)
    app = web.Application(middlewares=[guard])
    app.add_routes(
        [
            web.get("/functions", api.list),
            web.put("/functions", api.update),
            web.post("/functions", api.create),
            web.delete("/functions", api.remove),
            web.get("/function/{name}", api.describe),
            web.post("/scale-function/{name}", api.scale),
            web.get("/logs", api.logs),
            web.get("/info", api.info),
            web.get("/namespaces", api.namespaces),
            web.get("/secrets", api.list_secrets),
            web.post("/secrets", api.keep_secret),
            web.put("/secrets", api.keep_secret),
            web.delete("/secrets", api.delete_secret),
        ]
    )
    return app


class SystemApi:
    """The request handlers."""

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self._registry = registry
        self._metrics = metrics

    async def list(self, request: web.Request) -> web.Response:
        """Return every function; none for an unknown namespace."""
        if request.query.get("namespace", names.NAMESPACE) not in ("", names.NAMESPACE):
            return web.json_response([])
        return web.json_response([self._status(function) for function in self._registry.all()])

    async def create(self, request: web.Request) -> web.Response:
        await self._registry.create(Deployment.parse(await _read_json(request)))
        return web.Response(status=202)

    async def update(self, request: web.Request) -> web.Response:
        """Deploy a function again; 404 makes faas-cli create it."""
        await self._registry.update(Deployment.parse(await _read_json(request)))
        return web.Response(status=202)

    async def remove(self, request: web.Request) -> web.Response:
        body = await _read_json(request)
        names.check_namespace(body.get("namespace"))
        await self._registry.remove(_text_field(body, "functionName"))
        return web.Response(status=202)

    async def describe(self, request: web.Request) -> web.Response:
        """Return one function, with its usage if asked."""
        function = self._registry.get(request.match_info["name"])
        status = self._status(function)
        if request.query.get("usage") in ("1", "true"):
            children = [replica.child for replica in function.newest.ready]
            usage = await self._registry.host.backend.usage(children)
            status["usage"] = {"cpu": usage.millicores, "totalMemoryBytes": usage.memory_bytes}
        return web.json_response(status)

    async def scale(self, request: web.Request) -> web.Response:
        replicas = (await _read_json(request)).get("replicas")
        if type(replicas) is not int:
            raise ChironError("bad-replicas", "replicas: give a whole number")
        self._registry.scale(request.match_info["name"], replicas)
        return web.Response(status=200)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        name = request.query.get("name")
        if not name:
            raise ChironError("name-missing", "logs: give the function's name as ?name=")
        function = self._registry.get(name)
        return await stream_logs(request, function.name, function.log)

    async def info(self, request: web.Request) -> web.Response:
        """Return name and version; clients recognise the embedded gateway by its provider."""
        release = {"sha": "", "release": VERSION}
        runs = self._registry.host.backend.name
        provider = {"provider": PROVIDER, "version": release, "orchestration": runs}
        version = {"commit_message": "", **release}
        return web.json_response(
            {"provider": provider, "version": version, "arch": platform.machine()}
        )

    async def namespaces(self, request: web.Request) -> web.Response:
        return web.json_response([names.NAMESPACE])

    async def list_secrets(self, request: web.Request) -> web.Response:
        """Return the names of the secrets, without their values."""
        secrets = self._registry.host.secrets.names()
        return web.json_response([{"name": each, "namespace": names.NAMESPACE} for each in secrets])

    async def keep_secret(self, request: web.Request) -> web.Response:
        """Add a secret by POST, change it by PUT."""
        body = await _read_json(request)
        secrets = self._registry.host.secrets
        keep = secrets.create if request.method == "POST" else secrets.update
        keep(_secret_name(body), _secret_value(body))
        return web.Response(status=200)

    async def delete_secret(self, request: web.Request) -> web.Response:
        self._registry.host.secrets.delete(_secret_name(await _read_json(request)))
        return web.Response(status=200)

    def _status(self, function: Function) -> dict[str, Any]:
        revision = function.newest
        deployment = revision.deployment.model_dump(by_alias=True, exclude_none=True)
        del deployment["service"]
        status = {
            **deployment,
            "name": function.name,
            "namespace": names.NAMESPACE,
            "replicas": revision.desired,
            "availableReplicas": len(revision.ready),
        }
        # Like Go's omitempty: leaves out empty, zero and false values.
        present = {key: value for key, value in status.items() if value}
        present["invocationCount"] = self._metrics.invocations(function.name)
        present["createdAt"] = function.created.isoformat().replace("+00:00", "Z")
        return present


async def _read_json(request: web.Request) -> dict[str, Any]:
    """Return the request's JSON object; ChironError: 400 if invalid, 408 after the timeout."""
    try:
        async with asyncio.timeout(_BODY_TIMEOUT_S):
            body = json.loads(await request.read())
        json.dumps(body, ensure_ascii=False).encode()  # raises for half of a surrogate pair
    except TimeoutError as error:
        message = f"the request's body did not come within {_BODY_TIMEOUT_S:g} s"
        raise ChironError("request-timeout", message, status=408) from error
    except ValueError as error:
        raise ChironError("bad-json", f"request body is not JSON: {error}") from error
    except RecursionError as error:
        raise ChironError("bad-json", "request body is nested too deep") from error
    if not isinstance(body, dict):
        raise ChironError("bad-json", "request body is not a JSON object")
    return body


def _text_field(body: dict[str, Any], name: str) -> str:
    """Return a required text field; raises ChironError (400)."""
    value = body.get(name)
    if not isinstance(value, str) or not value:
        raise ChironError("bad-field", f"{name}: missing, or not text")
    return value


def _secret_name(body: dict[str, Any]) -> str:
    names.check_namespace(body.get("namespace"))
    return names.secret_name(_text_field(body, "name"))


def _secret_value(body: dict[str, Any]) -> bytes:
    """Return the secret's bytes: `rawValue` in base64, as Go writes bytes, or `value` as text."""
    if body.get("rawValue"):
        try:
            return base64.b64decode(_text_field(body, "rawValue"), validate=True)
        except ValueError as error:
            raise ChironError("bad-field", "rawValue: not base64") from error
    value = body.get("value", "")
    if not isinstance(value, str):
        raise ChironError("bad-field", "value: not text")
    return value.encode()

"""The management API below /system: the part of OpenFaaS's REST interface that faas-cli calls."""

from __future__ import annotations

import platform
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import web

from gateway import names
from gateway.access import Credentials, refuse_cross_site
from gateway.bodies import read_json, text_field
from gateway.deployment import Deployment
from gateway.errors import GatewayError
from gateway.function import Function
from gateway.logs import stream_logs
from gateway.metrics import Metrics
from gateway.proxy import PROVIDER, VERSION
from gateway.registry import Registry
from gateway.secret_store import secret_routes

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


def system_app(
    registry: Registry, metrics: Metrics, credentials: Credentials | None
) -> web.Application:
    """The application to mount at /system/."""
    api = SystemApi(registry, metrics)
    checks = [_plain_text_errors, _no_web_pages(credentials), _basic_auth(credentials)]
    app = web.Application(middlewares=checks)
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
            *secret_routes(registry.host.secrets),
        ]
    )
    return app


class SystemApi:
    """Handlers over the registry."""

    def __init__(self, registry: Registry, metrics: Metrics) -> None:
        self._registry = registry
        self._metrics = metrics

    async def list(self, request: web.Request) -> web.Response:
        """Every function; none in a namespace that does not exist."""
        if request.query.get("namespace", names.NAMESPACE) not in ("", names.NAMESPACE):
            return web.json_response([])
        found = [self._status(function) for function in self._registry.all()]
        if self._registry.host.provider.removes_first:
            for status in found:
                status.pop("availableReplicas", None)
        return web.json_response(found)

    async def create(self, request: web.Request) -> web.Response:
        """Deploy a function that is not there yet."""
        await self._registry.create(Deployment.parse(await read_json(request)))
        return web.Response(status=202)

    async def update(self, request: web.Request) -> web.Response:
        """Deploy a function anew; 404 makes faas-cli create it."""
        await self._registry.update(Deployment.parse(await read_json(request)))
        return web.Response(status=202)

    async def remove(self, request: web.Request) -> web.Response:
        """Remove a function."""
        body = await read_json(request)
        names.check_namespace(body.get("namespace"))
        await self._registry.remove(text_field(body, "functionName"))
        return web.Response(status=202)

    async def describe(self, request: web.Request) -> web.Response:
        """One function; with its usage if asked."""
        function = self._registry.get(request.match_info["name"])
        status = self._status(function)
        if request.query.get("usage") in ("1", "true"):
            children = [replica.child for replica in function.newest.ready if replica.child]
            usage = await self._registry.host.backend.usage(children)
            status["usage"] = {"cpu": usage.millicores, "totalMemoryBytes": usage.memory_bytes}
        return web.json_response(status)

    async def scale(self, request: web.Request) -> web.Response:
        """Set the number of replicas."""
        replicas = (await read_json(request)).get("replicas")
        if type(replicas) is not int:
            raise GatewayError("bad-replicas", "replicas: give a whole number")
        self._registry.scale(request.match_info["name"], replicas)
        return web.Response(status=200)

    async def logs(self, request: web.Request) -> web.StreamResponse:
        """A function's log as NDJSON."""
        name = request.query.get("name")
        if not name:
            raise GatewayError("name-missing", "logs: give the function's name as ?name=")
        function = self._registry.get(name)
        return await stream_logs(request, function.name, function.log)

    async def info(self, request: web.Request) -> web.Response:
        """Name and version; a client knows the embedded gateway by its provider."""
        release = {"sha": "", "release": VERSION}
        host = self._registry.host
        provider = {
            "provider": PROVIDER,
            "version": release,
            "orchestration": host.provider.orchestration or host.backend.name,
            "removesFirst": host.provider.removes_first,
        }
        version = {"commit_message": "", **release}
        return web.json_response(
            {"provider": provider, "version": version, "arch": platform.machine()}
        )

    async def namespaces(self, request: web.Request) -> web.Response:
        """The one namespace there is."""
        return web.json_response([names.NAMESPACE])

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
        # As Go's omitempty does: what is empty, zero or false is left out.
        present = {key: value for key, value in status.items() if value}
        present["invocationCount"] = self._metrics.invocations(function.name)
        present["createdAt"] = function.created.isoformat().replace("+00:00", "Z")
        return present


@web.middleware
async def _plain_text_errors(request: web.Request, handler: _Handler) -> web.StreamResponse:
    try:
        return await handler(request)
    except GatewayError as error:
        return web.Response(status=error.status, text=error.message + "\n")


def _no_web_pages(credentials: Credentials | None) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        refuse_cross_site(request.method, request.headers.get, secret=credentials is not None)
        return await handler(request)

    return check


def _basic_auth(credentials: Credentials | None) -> Any:
    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        if credentials and not credentials.admit(request.headers.get("Authorization")):
            return web.Response(
                status=401,
                text="invalid credentials\n",
                headers={"WWW-Authenticate": 'Basic realm="Restricted"'},
            )
        return await handler(request)

    return check

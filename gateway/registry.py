"""All deployed functions: deploy, update, scale, remove, find."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from gateway.backend import ImageInUse
from gateway.deployment import Deployment, check_replicas
from gateway.errors import GatewayError
from gateway.function import Function
from gateway.logs import Log
from gateway.names import without_namespace
from gateway.replica import Times
from gateway.revision import Host, Revision


class Registry:
    """Functions by name. They live as long as the gateway does."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._functions: dict[str, Function] = {}
        self._leaving: set[str] = set()
        self._closing = asyncio.Event()
        self._background: set[asyncio.Task[None]] = set()

    def find(self, name: str) -> Function | None:
        """The function called ``NAME`` or ``NAME.openfaas-fn``."""
        return self._functions.get(name) or self._functions.get(without_namespace(name))

    def get(self, name: str) -> Function:
        """As `find`; raises GatewayError (404) if there is none."""
        function = self.find(name)
        if function is None:
            raise GatewayError("unknown-function", f"service {name} not found", 404)
        return function

    def all(self) -> list[Function]:
        """Every function, by name."""
        return [self._functions[name] for name in sorted(self._functions)]

    async def create(self, deployment: Deployment) -> None:
        """Deploy a new function; 400 if there is one of that name."""
        name = deployment.service
        self._check_new(name)
        image = await self.host.backend.use(deployment.image)
        log = Log()
        with _released_on_error(image):
            self._check_new(name)  # again, as another client may have been faster
            revision = self._revision(deployment, image, log)
        self._functions[name] = Function(name, log, revision, self._spawn)
        revision.scale(1 if deployment.min_replicas is None else deployment.min_replicas)

    async def update(self, deployment: Deployment) -> None:
        """Deploy a function anew without losing a request; 404 if there is none of that name."""
        self._present(deployment.service)
        image = await self.host.backend.use(deployment.image)
        with _released_on_error(image):
            if self.host.provider.removes_first:
                await self._present(deployment.service).newest.end()
            function = self._present(deployment.service)
            revision = self._revision(deployment, image, function.log)
        replicas = deployment.min_replicas
        if replicas is None:
            replicas = function.newest.desired or 1
        function.update(revision, replicas)

    def scale(self, name: str, replicas: int) -> None:
        """Have so many replicas of a function; 404 if unknown."""
        function = self._present(name)
        check_replicas(function.name, replicas)
        function.newest.scale(replicas)

    async def remove(self, name: str) -> None:
        """Forget a function and end its replicas in the background; 404 if unknown.

        faasd ends them before it forgets and answers, Kubernetes answers before it forgets.
        """
        function = self._present(name)
        if self.host.provider.removes_first:
            await function.newest.end()
            function = self._present(name)
        if self.host.provider.removes_later:
            self._leaving.add(function.name)
            self._spawn(self._forget_when_ended(function))
            return
        del self._functions[function.name]
        self._spawn(function.retire())

    async def close(self, times: Times) -> None:
        """End every function's replicas, and wait until they have ended."""
        self._closing.set()
        for function in self.all():
            if function.name not in self._leaving:
                del self._functions[function.name]
                self._spawn(function.retire(times))
        while self._background:
            await asyncio.wait(self._background)

    def _present(self, name: str) -> Function:
        """As `get`, but for one that is being removed: its service is gone already."""
        function = self.get(name)
        if function.name in self._leaving:
            raise GatewayError("unknown-function", f'services "{name}" not found', 404)
        return function

    async def _forget_when_ended(self, function: Function) -> None:
        running = bool(function.newest.ready)
        await function.retire()
        if running:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._closing.wait(), function.newest.asleep_s)
        del self._functions[function.name]
        self._leaving.remove(function.name)

    def _check_new(self, name: str) -> None:
        if name in self._leaving:
            raise GatewayError(
                "being-removed",
                "unable create Deployment: object is being deleted: "
                f'deployments.apps "{name}" already exists',
                500,
            )
        if name in self._functions:
            raise GatewayError(
                "service-exists",
                f"service {name} already exists: deploy with --update to change it",
            )

    def _revision(self, deployment: Deployment, image: ImageInUse, log: Log) -> Revision:
        self.host.secrets.check(deployment.secrets)
        folder = self.host.scratch / f"{deployment.service}-{secrets.token_hex(4)}"
        return Revision(deployment, image, self.host, log, folder)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task


@contextmanager
def _released_on_error(image: ImageInUse) -> Iterator[None]:
    try:
        yield
    except BaseException:
        image.release()
        raise

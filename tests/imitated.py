"""The embedded gateway with the behaviour of faasd or Kubernetes; the program starts it.

Usage: imitated.py PROVIDER GRACE_S [OPTION OF python -m chiron.gateway]...
"""

from __future__ import annotations

import asyncio
import json
import math
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal
from unittest.mock import patch

from aiohttp import web

from chiron.gateway import __main__ as program
from chiron.gateway import processes, server, system_api
from chiron.gateway.backend import Child, ImageInUse, StartRequest
from chiron.gateway.deployment import Deployment, duration_s
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.logs import LineReader, Log
from chiron.gateway.names import NAMESPACE
from chiron.gateway.registry import Function, Registry
from chiron.gateway.replica import Replica
from chiron.gateway.revision import Host, Revision
from chiron.gateway.system_api import SystemApi
from chiron.workflow.errors import ChironError

ProviderName = Literal["faasd", "kubernetes"]
#: Seconds after SIGTERM when faasd and Kubernetes kill a process.
GRACE_S = 30.0
_LOOK_S = 0.05
_SRC = Path(__file__).parents[1] / "src"


class ImitatedGateway(EmbeddedGateway):
    """Kills what takes longer than `grace_s` to end; without a provider, the embedded gateway."""

    def __init__(
        self, provider: ProviderName | None, grace_s: float = GRACE_S, **options: Any
    ) -> None:
        super().__init__(**options)
        self._imitates = [provider, str(grace_s)] if provider else None

    def __enter__(self) -> ImitatedGateway:
        if self._imitates is None:
            super().__enter__()
            return self

        def start(_: str, *arguments: str, **pipes: Any) -> subprocess.Popen[bytes]:
            return subprocess.Popen(
                [sys.executable, "-P", __file__, *self._imitates, *arguments],
                env=os.environ | {"PYTHONPATH": str(_SRC)},
                start_new_session=True,
                **pipes,
            )

        with patch.object(processes, "start_own", start):
            super().__enter__()
        return self


@dataclass(frozen=True)
class Provider:
    """How functions are started, replaced and removed."""

    #: Its name in /system/info; empty for the backend's.
    orchestration: str
    #: A function has one replica, which ends before the next deployment's starts. It is not
    #: restarted if it ends by itself, and lists omit the count of ready replicas.
    removes_first: bool
    #: Status and message of a call when no replica is ready.
    unreachable: tuple[int, str]
    #: The longest sleep of of-watchdog at the end of a replica, in seconds.
    grace_s: float = GRACE_S

    @property
    def removes_later(self) -> bool:
        """A removal is answered at once; the name is free only when the replicas have ended."""
        return not self.removes_first

    @property
    def schedules(self) -> bool:
        """A replica starts when enough of the machine's CPU is free for its request."""
        return not self.removes_first


PROVIDERS: dict[str, Provider] = {
    "faasd": Provider("", True, (500, "Can't reach service for: {}")),
    "kubernetes": Provider("kubernetes", False, (503, "No endpoints available for: {}.")),
}


class CpuPool:
    """CPU that replicas request, in thousandths of a core; they wait while too little is free."""

    def __init__(self, millicores: float) -> None:
        self._free = millicores
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def reserve(self, millicores: int) -> AsyncIterator[None]:
        while millicores > self._free:
            await self._changed.wait()
        self._free -= millicores
        try:
            yield
        finally:
            self._free += millicores
            self._changed.set()
            self._changed = asyncio.Event()


def behind_watchdog(image: ImageInUse) -> ImageInUse:
    """Return the image with wraps that wake of-watchdog when they end, as no requests follow.

    The Dockerfile of their template's image sets the same variable.
    """

    def start(order: StartRequest, log: LineReader) -> Child:
        variables = {"WRAP_LINGER_MS": "1", **order.deployment.env_vars}
        deployment = order.deployment.model_copy(update={"env_vars": variables})
        return image.start(replace(order, deployment=deployment), log)

    return replace(image, start=start)


class ImitatedRevision(Revision):
    """The replicas of a deployment, as the provider runs them."""

    def __init__(self, provider: Provider, pool: CpuPool, *arguments: Any) -> None:
        deployment, image, *others = arguments
        super().__init__(deployment, behind_watchdog(image), *others)
        self._provider, self._pool = provider, pool
        variables = deployment.env_vars
        asleep = variables.get("healthcheck_interval") or variables.get("write_timeout", "60s")
        #: Seconds that of-watchdog sleeps after SIGTERM, if its function then exits with 0.
        self._would_sleep_s = duration_s(asleep) or math.inf
        self._asleep_s = min(provider.grace_s, self._would_sleep_s)

    def scale(self, replicas: int) -> None:
        super().scale(min(replicas, 1) if self._provider.removes_first else replicas)

    async def end(self) -> None:
        """End every replica as faasd does, which waits for the watchdog's sleep.

        Raises ChironError (500) if of-watchdog slept for longer; the replica is gone all the same.
        """
        if not self.desired:
            return
        children = [replica.child for replica in self.ready]
        self.scale(0)
        if not await self.slept(children) and self._would_sleep_s > self._asleep_s:
            name = self.deployment.service
            message = f"error deleting container {name}: cannot delete running task {name}"
            raise ChironError("not-removed", message, status=500)

    async def slept(self, children: Sequence[Child]) -> bool:
        """Wait while of-watchdog sleeps; return whether all `children` woke it by a failed exit."""
        until = time.monotonic() + self._asleep_s
        while time.monotonic() < until:
            if children and all(each.ended.done() and each.ended.result() > 0 for each in children):
                return True
            await asyncio.sleep(_LOOK_S)
        return False

    async def wait_ready(self) -> Replica:
        if (replica := self.next_ready()) is None:
            status, words = self._provider.unreachable
            raise ChironError("not-ready", words.format(self.deployment.service), status=status)
        return replica

    async def _keep_one(self) -> None:
        async with self._pool.reserve(self.deployment.requested_millicores):
            await super()._keep_one()

    async def _run(self, instance: str) -> str:
        why = await super()._run(instance)
        if self._provider.removes_first:  # nothing restarts it
            self.desired, self._keepers = 0, []
            self._log.write(instance, f"gateway: {why}".encode())
            raise asyncio.CancelledError
        return why


class ImitatedRegistry(Registry):
    """Functions by name, as the provider deploys and removes them."""

    def __init__(self, provider: Provider, host: Host) -> None:
        super().__init__(host)
        self.provider = provider
        self._gone: dict[str, Function] = {}
        cores = len(os.sched_getaffinity(0))
        self._pool = CpuPool(1000 * cores if provider.schedules else math.inf)

    def find(self, name: str) -> Function | None:
        return super().find(name) or self._gone.get(name.removesuffix(f".{NAMESPACE}"))

    def all(self) -> list[Function]:
        return sorted([*super().all(), *self._gone.values()], key=lambda each: each.name)

    async def update(self, deployment: Deployment) -> None:
        self._present(deployment.service)
        if self.provider.removes_first:
            (await self.host.backend.use(deployment.image)).release()  # else nothing is ended
            await self._newest(deployment.service).end()
        await super().update(deployment)

    def scale(self, name: str, replicas: int) -> None:
        self._present(name)
        super().scale(name, replicas)

    async def remove(self, name: str) -> None:
        """Remove a function: faasd ends its replicas before the answer, Kubernetes after it."""
        function = self._present(name)
        if self.provider.removes_first:
            await self._newest(name).end()
            await super().remove(name)
        else:
            self._gone[function.name] = self._functions.pop(function.name)
            self._background.spawn(self._forget_when_ended(function))

    def _present(self, name: str) -> Function:
        """Like `get`, but raise for a function that is being removed: its service is gone."""
        function = self.get(name)
        if function.name in self._gone:
            raise ChironError("unknown-function", f'services "{name}" not found', status=404)
        return function

    def _newest(self, name: str) -> ImitatedRevision:
        newest = self._present(name).newest
        assert isinstance(newest, ImitatedRevision)
        return newest

    async def _forget_when_ended(self, function: Function) -> None:
        newest = function.newest
        assert isinstance(newest, ImitatedRevision)
        children = [replica.child for replica in newest.ready]
        await function.retire()
        if children:
            asleep = asyncio.ensure_future(newest.slept(children))
            closing = asyncio.ensure_future(self.host.closing.wait())
            await asyncio.wait([asleep, closing], return_when=asyncio.FIRST_COMPLETED)
            asleep.cancel()
            closing.cancel()
        del self._gone[function.name]

    def _check_new(self, name: str) -> None:
        if name in self._gone:
            why = f'object is being deleted: deployments.apps "{name}" already exists'
            raise ChironError("being-removed", f"unable create Deployment: {why}", status=500)
        super()._check_new(name)

    def _revision(self, deployment: Deployment, image: ImageInUse, log: Log) -> Revision:
        self.host.secrets.check(deployment.secrets)
        folder = self.host.scratch / secrets.token_hex(4)
        return ImitatedRevision(
            self.provider, self._pool, deployment, image, self.host, log, folder
        )


class ImitatedApi(SystemApi):
    """The handlers of /system, with the provider's answers."""

    _registry: ImitatedRegistry

    async def list(self, request: web.Request) -> web.Response:
        found = json.loads((await super().list(request)).body)
        if self._registry.provider.removes_first:
            for status in found:
                status.pop("availableReplicas", None)
        return web.json_response(found)

    async def info(self, request: web.Request) -> web.Response:
        found = json.loads((await super().info(request)).body)
        its, provider = found["provider"], self._registry.provider
        its["orchestration"] = provider.orchestration or its["orchestration"]
        its["removesFirst"] = provider.removes_first
        return web.json_response(found)


def main(name: str, grace_s: str, *options: str) -> int:
    provider = replace(PROVIDERS[name], grace_s=float(grace_s))
    server.Registry = partial(ImitatedRegistry, provider)  # type: ignore[assignment,misc]
    system_api.SystemApi = ImitatedApi  # type: ignore[misc]
    return program.main(list(options))


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

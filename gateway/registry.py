"""All deployed functions: deploy, update, scale, remove, find."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime

from chiron.gateway.backend import ImageInUse, Tasks
from chiron.gateway.deployment import CallLimits, Deployment, check_replicas
from chiron.gateway.logs import Log
from chiron.gateway.names import NAMESPACE
from chiron.gateway.replica import Replica
from chiron.gateway.revision import Host, Revision
from chiron.workflow.errors import ChironError

#: The most concurrent calls of a function, with calls that wait for a replica or a connection.
_MOST_CALLS = 2048


class Function:
    """A name with at most two revisions, one of which may still be starting."""

    def __init__(self, name: str, log: Log, revision: Revision, background: Tasks) -> None:
        self.name = name
        self.log = log
        self.created = datetime.now(UTC)
        self.newest = revision
        self._serving = revision
        self._background = background
        self._switch: asyncio.Task[None] | None = None
        self._calls = 0

    def update(self, revision: Revision, replicas: int) -> None:
        """Replace the newest revision; the serving revision stays until the new one is ready."""
        if self._switch:
            self._switch.cancel()
        if self.newest is not self._serving:
            self._background.spawn(self.newest.retire())
        self.newest = revision
        self.created = datetime.now(UTC)
        revision.scale(replicas)
        self._switch = self._background.spawn(self._switch_when_ready(revision))

    @property
    def limits(self) -> CallLimits:
        return self._serving.limits

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Admit a call; ChironError (429) if there are too many already."""
        if self._calls >= _MOST_CALLS:
            message = f"function {self.name}: {_MOST_CALLS} calls are running or waiting already"
            raise ChironError("too-many-requests", message, status=429)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def wait_ready(self) -> Replica:
        """Wait for a replica with capacity; ChironError: 503 if none gets ready, 429 if full."""
        while True:
            revision = self._serving
            try:
                return await revision.wait_ready()
            except ChironError:
                if revision is self._serving:
                    raise

    async def retire(self) -> None:
        """Drain and end all revisions."""
        if self._switch:
            self._switch.cancel()
        revisions = {self._serving, self.newest}
        await asyncio.gather(*(revision.retire() for revision in revisions))
        self.log.close()

    async def _switch_when_ready(self, revision: Revision) -> None:
        if self._serving.ready:
            await revision.all_ready()
        old, self._serving = self._serving, revision
        self._background.spawn(old.retire())


class Registry:
    """Functions by name, for as long as the gateway runs."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self._functions: dict[str, Function] = {}
        self._background = Tasks()

    def find(self, name: str) -> Function | None:
        """Return the function called ``NAME`` or ``NAME.openfaas-fn``."""
        return self._functions.get(name.removesuffix(f".{NAMESPACE}"))

    def get(self, name: str) -> Function:
        """Like `find`, but raise ChironError (404) if there is none."""
        function = self.find(name)
        if function is None:
            raise ChironError("unknown-function", f"service {name} not found", status=404)
        return function

    def all(self) -> list[Function]:
        """Return every function, sorted by name."""
        return [self._functions[name] for name in sorted(self._functions)]

    async def create(self, deployment: Deployment) -> None:
        """Deploy a new function; ChironError (400) if its name is taken."""
        name = deployment.service
        self._check_new(name)
        image = await self.host.backend.use(deployment.image)
        log = Log()
        with ExitStack() as on_error:
            on_error.callback(image.release)
            self._check_new(name)  # again, as another client may have been faster
            revision = self._revision(deployment, image, log)
            on_error.pop_all()
        self._functions[name] = Function(name, log, revision, self._background)
        revision.scale(1 if deployment.min_replicas is None else deployment.min_replicas)

    async def update(self, deployment: Deployment) -> None:
        """Deploy a function again without losing a request; ChironError (404) if it is unknown."""
        self.get(deployment.service)
        image = await self.host.backend.use(deployment.image)
        with ExitStack() as on_error:
            on_error.callback(image.release)
            function = self.get(deployment.service)
            revision = self._revision(deployment, image, function.log)
            on_error.pop_all()
        replicas = deployment.min_replicas
        if replicas is None:
            replicas = function.newest.desired or 1
        function.update(revision, replicas)

    def scale(self, name: str, replicas: int) -> None:
        """Set the number of replicas of a function; ChironError (404) if it is unknown."""
        function = self.get(name)
        check_replicas(function.name, replicas)
        function.newest.scale(replicas)

    async def remove(self, name: str) -> None:
        """Forget a function and end its replicas in the background; 404 if unknown."""
        function = self.get(name)
        del self._functions[function.name]
        self._background.spawn(function.retire())

    async def close(self) -> None:
        """End every function's replicas soon, and wait for them."""
        self.host.closing.set()
        while self._functions:
            _, function = self._functions.popitem()
            self._background.spawn(function.retire())
        while self._background:
            await asyncio.wait(self._background)

    def _check_new(self, name: str) -> None:
        if name in self._functions:
            message = f"service {name} already exists: deploy with --update to change it"
            raise ChironError("service-exists", message)

    def _revision(self, deployment: Deployment, image: ImageInUse, log: Log) -> Revision:
        self.host.secrets.check(deployment.secrets)
        folder = self.host.scratch / secrets.token_hex(4)
        return Revision(deployment, image, self.host, log, folder)

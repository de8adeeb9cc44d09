"""A deployed function: the revision that serves, and the newer one that is getting ready."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Any

from gateway.deployment import CallLimits
from gateway.errors import GatewayError
from gateway.logs import Log
from gateway.replica import Replica, Times
from gateway.revision import Revision

#: Calls of a function at once, those included that wait for a replica or a connection to one.
_MOST_CALLS = 2048
Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Function:
    """A name with at most two revisions behind it; requests go to one that is ready."""

    def __init__(self, name: str, log: Log, revision: Revision, spawn: Spawn) -> None:
        self.name = name
        self.log = log
        self.created = datetime.now(UTC)
        self.newest = revision
        self._serving = revision
        self._spawn = spawn
        self._switch: asyncio.Task[None] | None = None
        self._calls = 0

    def update(self, revision: Revision, replicas: int) -> None:
        """Replace the newest revision; the serving one stays until the new one is ready."""
        if self._switch:
            self._switch.cancel()
        if self.newest is not self._serving:
            self._spawn(self.newest.retire())
        self.newest = revision
        self.created = datetime.now(UTC)
        revision.scale(replicas)
        self._switch = self._spawn(self._switch_when_ready(revision))

    @property
    def limits(self) -> CallLimits:
        """What a call may take."""
        return self._serving.limits

    @contextmanager
    def admit(self) -> Iterator[None]:
        """Take a call in; GatewayError (429) if there are too many already."""
        if self._calls >= _MOST_CALLS:
            message = f"function {self.name}: {_MOST_CALLS} calls are running or waiting already"
            raise GatewayError("too-many-requests", message, 429)
        self._calls += 1
        try:
            yield
        finally:
            self._calls -= 1

    async def wait_ready(self) -> Replica:
        """Wait for a replica that can take a request.

        Raises:
            GatewayError: 503 if none gets ready, 429 if all have as many requests as they take.
        """
        while True:
            revision = self._serving
            try:
                return await revision.wait_ready()
            except GatewayError:
                if revision is self._serving:
                    raise

    async def retire(self, times: Times | None = None) -> None:
        """Drain and end all revisions."""
        if self._switch:
            self._switch.cancel()
        await asyncio.gather(*(revision.retire(times) for revision in {self._serving, self.newest}))
        self.log.close()

    async def _switch_when_ready(self, revision: Revision) -> None:
        if self._serving.ready:
            await revision.all_ready()
        old, self._serving = self._serving, revision
        self._spawn(old.retire())

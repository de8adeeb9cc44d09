"""One deployment of a function: keeps its replicas running and gives them requests in turn."""

from __future__ import annotations

import asyncio
import logging
import math
import secrets
import shutil
import time
from dataclasses import dataclass, field
from pathlib import Path

from chiron.gateway.backend import Backend, ImageInUse, StartRequest
from chiron.gateway.deployment import Deployment
from chiron.gateway.logs import LineReader, Log
from chiron.gateway.replica import Replica, StartFailedError
from chiron.gateway.secret_store import SecretStore
from chiron.workflow.errors import ChironError

_FIRST_DELAY_S = 0.25
#: Calls wait for a replica that restarts within this delay; with a longer delay they fail.
_PATIENCE_S = 1.0
_LONGEST_DELAY_S = 30.0
_STEADY_AFTER_S = 10.0
_log = logging.getLogger("gateway")
#: The fewest seconds that running calls have to end before their replica is stopped.
_DRAIN_S = 60.0


@dataclass(frozen=True)
class Host:
    """The objects that all functions of a gateway share."""

    backend: Backend
    secrets: SecretStore
    scratch: Path
    ready_s: float
    # Limits parallel starts: starting Python takes a core, so many starts would all be late.
    starting: asyncio.Semaphore
    #: Set when the gateway ends: then calls have no time left.
    closing: asyncio.Event = field(default_factory=asyncio.Event)


class Revision:
    """A deployment's replicas; each deployment makes a revision, and the next replaces it.

    Args:
        folder: the parent of the replicas' folders. Its path and theirs have no names: a function
            binds sockets below its TMPDIR, and a socket's path has at most 107 bytes.
    """

    def __init__(
        self, deployment: Deployment, image: ImageInUse, host: Host, log: Log, folder: Path
    ) -> None:
        self.deployment = deployment
        self.limits = deployment.call_limits()
        self.desired = 0
        self.problem: str | None = None
        self.ready: list[Replica] = []
        self._image = image
        self._host = host
        self._log = log
        self._folder = folder
        self._keepers: list[asyncio.Task[None]] = []
        self._leaving: set[asyncio.Task[None]] = set()
        self._turn = 0
        self._retired = False
        answer_s = self.limits.answer_s
        self._drain_s = max(_DRAIN_S, answer_s) if math.isfinite(answer_s) else _DRAIN_S
        self._changed = asyncio.Event()
        host.secrets.mount(self._secrets, deployment.secrets)

    def scale(self, replicas: int) -> None:
        """Keep `replicas` replicas running; surplus replicas drain and end."""
        self.desired = replicas
        while len(self._keepers) < replicas:
            self._keepers.append(asyncio.create_task(self._keep_one()))
        for keeper in self._keepers[replicas:]:
            keeper.cancel()
            self._leaving.add(keeper)
            keeper.add_done_callback(self._leaving.discard)
        del self._keepers[replicas:]

    async def retire(self) -> None:
        """Drain and end every replica, and release the image, secrets and folder."""
        self._retired = True
        self.scale(0)
        self._notify()
        while self._leaving:
            await asyncio.wait(self._leaving)
        self._host.secrets.unmount(self._secrets)
        self._image.release()
        await asyncio.to_thread(shutil.rmtree, self._folder, ignore_errors=True)

    def next_ready(self) -> Replica | None:
        """Return the next ready replica below its limit, or None; ChironError: 429 if full."""
        for _ in self.ready:
            self._turn = (self._turn + 1) % len(self.ready)
            replica = self.ready[self._turn]
            if self.limits.inflight is None or replica.inflight < self.limits.inflight:
                return replica
        if self.ready:
            name = self.deployment.service
            message = f"function {name}: max_inflight requests are running already"
            raise ChironError("too-many-requests", message, status=429)
        return None

    async def wait_ready(self) -> Replica:
        """Wait for a replica, scaling from zero if need be; ChironError (503) with the reason."""
        name = self.deployment.service
        while (replica := self.next_ready()) is None:
            why = "it is being removed" if self._retired else self.problem
            if why:
                message = f"function {name} is not ready: {why}; see faas-cli logs {name}"
                raise ChironError("not-ready", message, status=503)
            if not self.desired:
                self.scale(1)
            await self._changed.wait()
        return replica

    async def all_ready(self) -> None:
        """Wait until as many replicas as desired are ready."""
        while len(self.ready) < self.desired:
            await self._changed.wait()

    @property
    def _secrets(self) -> Path:
        return self._folder / "secrets"

    async def _keep_one(self) -> None:
        """Run one replica after another until cancelled, with growing delays while they fail."""
        failures = 0
        while True:
            instance = f"{self.deployment.service}-{secrets.token_hex(3)}"
            began = time.monotonic()
            try:
                why = await self._run(instance)
                steady = time.monotonic() - began > _STEADY_AFTER_S
                failures = 0 if steady else failures + 1
                delay = backoff_s(failures - 1)
                if delay > _PATIENCE_S:
                    self.problem = f"{why}, {failures} times soon after its start"
            except Exception as error:
                # Catches everything: without this task calls would wait for a replica for ever.
                if isinstance(error, StartFailedError):
                    why = self.problem = str(error)
                else:
                    why = self.problem = f"the gateway failed: {type(error).__name__}: {error}"
                    _log.exception("replica %s", instance)
                failures += 1
                delay = backoff_s(failures)
            self._notify()
            said = f"gateway: {why}; next start in {delay:g} s"
            self._log.write(instance, said.encode())
            await asyncio.sleep(delay)

    async def _run(self, instance: str) -> str:
        """Run a replica until it ends; return how it ended."""
        folder = self._folder / instance.rpartition("-")[2]
        order = StartRequest(instance, self.deployment, folder, self._secrets)
        replica = None
        try:
            async with self._host.starting:
                replica = Replica(self._image.start(order, LineReader(self._log, instance)))
                await replica.become_ready(self._host.ready_s, self.limits.answer_s)
            self.problem = None
            self.ready.append(replica)
            self._notify()
            return await replica.wait_end()
        except OSError as error:
            raise StartFailedError(f"it cannot be started: {error}") from error
        finally:
            if replica in self.ready:
                self.ready.remove(replica)
            if replica is not None:
                await replica.stop(self._drain_s, self._host.closing)
            await asyncio.to_thread(shutil.rmtree, folder, ignore_errors=True)

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def backoff_s(failures: int) -> float:
    """Return the seconds before the next start after `failures` failed starts in a row."""
    return min(_LONGEST_DELAY_S, _FIRST_DELAY_S * 2 ** (failures - 1)) if failures > 0 else 0.0

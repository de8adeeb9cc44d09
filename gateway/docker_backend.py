"""Replicas that are Docker containers of this machine, reached on Docker's own bridge.

No port is published: the gateway connects to a container's address on the bridge, as faasd and
Kubernetes do, and containers reach the gateway's function URLs at the bridge's address of this
machine, which is no other machine's business.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import signal
import socket
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gateway import docker_engine, processes
from gateway.backend import HEALTH_PATH, Child, Order
from gateway.docker_container import Container, Origin, container_settings, container_usage
from gateway.docker_engine import ALL_CLEAR
from gateway.environment import start_supervisor
from gateway.errors import GatewayError
from gateway.logs import LineReader
from gateway.names import BackendName
from gateway.processes import CpuMeter, Usage

#: What of-watchdog hands on to the function, where the image's variable `ready_path` says so.
_WATCHDOG_READY_PATH = "/_/ready"
_BACKLOG = 1024


@dataclass
class Supervision:
    """Holds the channel to the supervisor; closing it has the gateway's containers removed."""

    channel: socket.socket
    process: subprocess.Popen[bytes]
    scratch: Path
    on_lost: Callable[[], None]

    @classmethod
    def open(cls, owner: str, scratch: Path, on_lost: Callable[[], None]) -> Supervision:
        """Start the supervisor of the gateway `owner`. Needs a running event loop.

        Args:
            owner: what the label of its containers says.
            scratch: folder of the gateway's temporary files, which the supervisor removes.
            on_lost: called if the supervisor ends by itself.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            process = start_supervisor("gateway.docker_engine", theirs, owner, str(scratch))
        supervision = cls(ours, process, scratch, on_lost)
        asyncio.get_running_loop().add_reader(ours, supervision._lost)
        return supervision

    async def dismiss(self, *, all_clear: bool) -> None:
        """Let the supervisor end: at once if no container is left, else once it removed them."""
        asyncio.get_running_loop().remove_reader(self.channel)
        with self.channel:
            if all_clear and self.process.poll() is None:
                self.channel.send(ALL_CLEAR)
        if all_clear:
            await asyncio.to_thread(self.process.wait)
            # The supervisor has removed it, unless it was killed.
            await asyncio.to_thread(shutil.rmtree, self.scratch, ignore_errors=True)

    def _lost(self) -> None:
        asyncio.get_running_loop().remove_reader(self.channel)
        self.on_lost()


class DockerBackend:
    """Runs images of the Docker engine; made by `open`.

    Attributes:
        door: a listening socket at the bridge's address, where containers reach the gateway.
    """

    name: BackendName = "docker"

    def __init__(
        self, client: Any, door: socket.socket, origin: Origin, supervision: Supervision
    ) -> None:
        self.door = door
        self._client = client
        self._origin = origin
        self._supervision = supervision
        self._containers: set[Container] = set()
        self._releases: set[asyncio.Task[None]] = set()
        self._meter = CpuMeter()

    @classmethod
    async def open(
        cls, url: str, port: int, scratch: Path, on_lost: Callable[[], None]
    ) -> DockerBackend:
        """Connect to the engine; remove what killed gateways have left behind.

        Args:
            url: where the gateway listens.
            port: its port, which containers reach it by too where it is free.
            scratch: folder of the gateway's temporary files.
            on_lost: called if the supervisor process ends by itself.

        Raises:
            GatewayError: docker-py is missing, no engine answers, it may not be used, or it is not
                on this machine.
        """
        client = await asyncio.to_thread(docker_engine.connect)
        address = await asyncio.to_thread(docker_engine.host_address, client)
        door = _listen(address, port)
        await asyncio.to_thread(docker_engine.remove_abandoned, client)
        inner_url = f"http://{address}:{door.getsockname()[1]}"
        origin = Origin(processes.identity(), url, inner_url)
        return cls(client, door, origin, Supervision.open(origin.owner, scratch, on_lost))

    async def use(self, reference: str) -> _EngineImage:
        """Note the id that `reference` has now."""
        image = await asyncio.to_thread(docker_engine.find_image, self._client, reference)
        return _EngineImage(self, image.id, _health_path(image))

    def start(self, image: str, health_path: str, order: Order, output: LineReader) -> Container:
        """As `ImageInUse.start`, for the image with the id `image`."""
        settings = container_settings(order, image, self._origin)
        self._containers = {one for one in self._containers if not one.removed.is_set()}
        container = Container(self._client, settings, health_path, output)
        self._containers.add(container)
        return container

    def release(self, image: str) -> None:
        """Have the image with the id `image` removed, once it runs nowhere, if it was rebuilt."""
        task = asyncio.create_task(self._remove_superseded(image))
        self._releases.add(task)
        task.add_done_callback(self._releases.discard)

    async def _remove_superseded(self, image: str) -> None:
        for container in [one for one in self._containers if one.image == image]:
            await container.removed.wait()
        await asyncio.to_thread(docker_engine.remove_superseded, self._client, image)

    async def usage(self, children: Sequence[Child]) -> Usage:
        """CPU time and memory of the containers' control groups."""
        containers = [child for child in children if isinstance(child, Container)]
        return await asyncio.to_thread(container_usage, containers, self._meter)

    async def close(self) -> None:
        """Wait until every container is removed, and let the supervisor end."""
        for container in self._containers:
            container.signal(signal.SIGKILL)
            await container.removed.wait()
        await asyncio.gather(*self._releases)
        await self._supervision.dismiss(all_clear=await asyncio.to_thread(self._nothing_left))
        self._client.close()

    def _nothing_left(self) -> bool:
        """Whether no container of this gateway is left: not if the engine is gone."""
        with contextlib.suppress(GatewayError):
            return not docker_engine.owned(self._client, self._origin.owner)
        return False


class _EngineImage:
    """An image of the engine, by its id."""

    def __init__(self, backend: DockerBackend, ident: str, health_path: str) -> None:
        self._backend = backend
        self._ident = ident
        self._health_path = health_path

    def start(self, order: Order, output: LineReader) -> Container:
        """Run a container of it."""
        return self._backend.start(self._ident, self._health_path, order, output)

    def release(self) -> None:
        """Let it go: a version that a later build has replaced is removed."""
        self._backend.release(self._ident)


def _health_path(image: Any) -> str:
    """What to ask: of-watchdog's own check would answer before the function is ready."""
    variables = image.attrs["Config"]["Env"] or []
    behind_watchdog = any(each.startswith("ready_path=") for each in variables)
    return _WATCHDOG_READY_PATH if behind_watchdog else HEALTH_PATH


def _listen(address: str, port: int) -> socket.socket:
    """A listener at the bridge's address of this machine, at `port` if that is free."""
    try:
        return socket.create_server((address, port), backlog=_BACKLOG)
    except OSError:
        return socket.create_server((address, 0), backlog=_BACKLOG)

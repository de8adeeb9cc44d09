"""Replicas that are Docker containers of this machine, reached on Docker's own bridge.

No port is published. The gateway connects to a container's address on the bridge, as faasd and
Kubernetes do. Containers reach the gateway's function URLs at the bridge's address of this machine,
which other machines cannot reach.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from signal import SIGKILL, Signals
from typing import Any, ClassVar

from chiron.gateway import docker_engine, processes
from chiron.gateway.backend import (
    BACKLOG,
    HEALTH_PATH,
    NOT_STARTED,
    Child,
    ImageInUse,
    StartRequest,
    Supervision,
    Tasks,
    above_limit,
)
from chiron.gateway.docker_engine import engine_errors
from chiron.gateway.logs import LineReader, Pauses
from chiron.gateway.names import BackendName
from chiron.gateway.processes import CpuMeter, Usage
from chiron.workflow.errors import ChironError

#: The path that of-watchdog forwards to the function if the image sets the variable `ready_path`.
_WATCHDOG_READY_PATH = "/_/ready"
_SECRETS_FOLDER = "/var/openfaas/secrets"
#: The period in which the kernel renews a container's CPU quota.
_PERIOD_US = 100_000
#: The most processes and threads of a container: far more than a wrap needs, and safe for a host.
_MOST_TASKS = 4096
#: `docker logs` shows the end of the log too; the gateway keeps its own.
_LOG = {"type": "json-file", "config": {"max-size": "1m"}}
#: The port on which every image of the templates listens, by of-watchdog or index.py itself.
_PORT = 8080
_READ_BYTES = 1 << 16
_FRAME_HEAD = 8
_LOST = 255
_log = logging.getLogger("gateway")
_NS_PER_S = 1e9


@dataclass
class DockerBackend:
    """Runs images of the Docker engine; `open` creates it."""

    #: docker-py's client.
    client: Any
    #: A listening socket at the bridge's address, where containers reach the gateway.
    inner_listener: socket.socket
    #: The gateway's URL, and its URL for containers.
    url: str
    inner_url: str
    #: The `processes.identity` of the gateway process.
    owner: str
    supervision: Supervision
    _containers: set[Container] = field(default_factory=set)
    _releases: Tasks = field(default_factory=Tasks)
    _meter: CpuMeter = field(default_factory=CpuMeter)
    name: ClassVar[BackendName] = "docker"

    @classmethod
    async def open(
        cls, url: str, port: int, scratch: Path, on_lost: Callable[[], None]
    ) -> DockerBackend:
        """Connect to the engine; remove the containers that killed gateways left behind.

        Args:
            url: the gateway's URL.
            port: its port, also used for containers if it is free on the bridge.
            scratch: folder of the gateway's temporary files.
            on_lost: called if the supervisor process ends by itself.

        Raises ChironError: docker-py is missing, no engine answers, access is denied, or the
        engine is not on this machine.
        """
        client = await asyncio.to_thread(docker_engine.connect)
        address = await asyncio.to_thread(docker_engine.host_address, client)
        inner_listener = _listen(address, port)
        await asyncio.to_thread(docker_engine.remove_abandoned, client)
        inner_url = f"http://{address}:{inner_listener.getsockname()[1]}"
        owner = processes.identity()
        supervision = Supervision.open(docker_engine.__name__, scratch, on_lost, owner)
        return cls(client, inner_listener, url, inner_url, owner, supervision)

    async def use(self, reference: str) -> ImageInUse:
        """Record the current id of `reference`; on release, remove the image if it was rebuilt."""
        image = await asyncio.to_thread(docker_engine.find_image, self.client, reference)
        variables = image.attrs["Config"]["Env"] or []
        # of-watchdog's own check would answer before the function is ready.
        behind_watchdog = any(each.startswith("ready_path=") for each in variables)
        health_path = _WATCHDOG_READY_PATH if behind_watchdog else HEALTH_PATH
        return ImageInUse(
            partial(self._start, image.id, health_path),
            lambda: self._releases.spawn(self._remove_superseded(image.id)),
        )

    def _start(
        self, image: str, health_path: str, order: StartRequest, output: LineReader
    ) -> Container:
        settings = self._settings(order, image)
        self._containers = {one for one in self._containers if not one.removed.is_set()}
        container = Container(self.client, settings, health_path, output)
        self._containers.add(container)
        return container

    def _settings(self, order: StartRequest, image: str) -> dict[str, Any]:
        """Return the arguments of docker-py's `containers.create` for a replica.

        The function runs as the image's user without capabilities, and can read its secrets. It has
        a copy of the image's files, writable unless the deployment says read-only.
        """
        deployment = order.deployment
        environment = deployment.environment(_SECRETS_FOLDER, self.inner_url)
        if deployment.env_process:
            environment["fprocess"] = deployment.env_process
        settings: dict[str, Any] = {
            "image": image,
            "name": order.instance,
            "environment": environment,
            "labels": {
                **deployment.labels,
                docker_engine.FUNCTION_LABEL: deployment.service,
                docker_engine.GATEWAY_URL_LABEL: self.url,
                docker_engine.OWNER_LABEL: self.owner,
            },
            "volumes": {str(order.secrets): {"bind": _SECRETS_FOLDER, "mode": "ro"}},
            "network_mode": docker_engine.NETWORK,
            "cap_drop": ["ALL"],
            "security_opt": ["no-new-privileges"],
            "pids_limit": _MOST_TASKS,
            "log_config": _LOG,
            # The gateway checks health; an image's own check starts a process every few seconds.
            "healthcheck": {"test": ["NONE"]},
        }
        if deployment.memory:
            # The same limit for memory and for memory plus swap: no swap, as on Kubernetes.
            settings |= {"mem_limit": deployment.memory, "memswap_limit": deployment.memory}
        if deployment.cpus:
            # Not nano_cpus, which Docker refuses above the number of cores, unlike Kubernetes.
            settings |= {"cpu_period": _PERIOD_US, "cpu_quota": round(deployment.cpus * _PERIOD_US)}
        if deployment.read_only_root_filesystem:
            settings |= {"read_only": True, "tmpfs": {"/tmp": ""}}  # noqa: S108 (the container's)
        return settings

    async def _remove_superseded(self, image: str) -> None:
        """Remove the image with the id `image` after its last container, if it was rebuilt."""
        for container in [one for one in self._containers if one.image == image]:
            await container.removed.wait()
        await asyncio.to_thread(docker_engine.remove_superseded, self.client, image)

    async def usage(self, children: Sequence[Child]) -> Usage:
        """Return CPU time and memory of the containers' control groups."""
        containers = [child for child in children if isinstance(child, Container)]
        return await asyncio.to_thread(container_usage, containers, self._meter)

    async def close(self) -> None:
        """Kill every container, wait until all are removed, and stop the supervisor."""
        for container in self._containers:
            container.signal(SIGKILL)
            await container.removed.wait()
        await asyncio.gather(*self._releases)
        if await asyncio.to_thread(self._nothing_left):
            with contextlib.suppress(OSError):  # the supervisor is gone
                self.supervision.channel.send(docker_engine.ALL_CLEAR)
            await self.supervision.close()
        else:
            self.supervision.leave()  # it removes them when the engine answers again
        self.client.close()

    def _nothing_left(self) -> bool:
        """Return whether no container of this gateway is left; False if the engine is gone."""
        with contextlib.suppress(ChironError):
            return not docker_engine.owned_containers(self.client, self.owner)
        return False


def _listen(address: str, port: int) -> socket.socket:
    """Return a listener at this machine's address on the bridge, at `port` if that is free."""
    try:
        return socket.create_server((address, port), backlog=BACKLOG)
    except OSError:
        return socket.create_server((address, 0), backlog=BACKLOG)


class Container(Child):
    """A container that runs until its first process ends, and is then removed."""

    def __init__(
        self, client: Any, settings: dict[str, Any], health_path: str, output: LineReader
    ) -> None:
        super().__init__()
        self.port = _PORT
        self.health_path = health_path
        self._client = client
        self._settings = settings
        self.image: str = settings["image"]
        self._lines = output
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._container: Any = None
        self._unwanted = False
        #: Set when the container has been removed.
        self.removed = asyncio.Event()
        threading.Thread(target=self._live, daemon=True, name=settings["name"]).start()

    @property
    def running(self) -> Any:
        """docker-py's container while it runs, else None."""
        with self._lock:
            return self._container

    def signal(self, number: Signals) -> None:
        """Signal the container's first process, or kill it as soon as it has started."""
        if not self.ended.done():
            self._loop.run_in_executor(None, self._signal, number)

    def _signal(self, number: Signals) -> None:
        with self._lock:
            self._unwanted = True
            container = self._container
        if container is not None:
            _kill(container, number)

    def _live(self) -> None:
        try:
            self._create_and_run()
        except Exception as error:  # no other code reports that it has ended
            _log.exception("container %s", self._settings["name"])
            self._tell(self.end, _LOST, f"the gateway failed: {type(error).__name__}: {error}")
            self._tell(self.removed.set)

    def _create_and_run(self) -> None:
        container = None
        try:
            with engine_errors():
                container = self._client.containers.create(**self._settings)
                output = container.attach_socket(params={"stdout": 1, "stderr": 1, "stream": 1})
                container.start()
                container.reload()
        except ChironError as error:
            self._tell(self.end, NOT_STARTED, error.message)
        else:
            self._run(container, output)
        if container is not None:
            docker_engine.remove(container)
        self._tell(self.removed.set)

    def _run(self, container: Any, output: Any) -> None:
        with self._lock:
            self._container = container
            unwanted = self._unwanted
        if unwanted:
            _kill(container, SIGKILL)
        network = container.attrs["NetworkSettings"]["Networks"][docker_engine.NETWORK]
        self._tell(self._started, network["IPAddress"], container.attrs["State"]["Pid"])
        try:
            with engine_errors():
                with contextlib.closing(output):
                    self._pass_on(output)
                # It may have closed its output and still run.
                code = container.wait(timeout=None)["StatusCode"]
                container.reload()
            self._conclude(code, container.attrs["State"]["OOMKilled"])
        except ChironError as error:
            self.fault = error.message
            self._tell(self.end, _LOST)
        finally:
            with self._lock:
                self._container = None

    def _pass_on(self, output: Any) -> None:
        """Log the output; while reading pauses, the engine holds back and the container waits."""
        from docker.utils.socket import read

        pauses = Pauses()
        rest = b""
        while received := read(output, _READ_BYTES):
            text, rest = unframed(rest + received)
            self._tell(self._lines.feed, text)
            time.sleep(pauses.after_reading_s())
        self._tell(self._lines.end)

    def _conclude(self, status: int, out_of_memory: bool) -> None:
        # A shell's convention, and Docker's: 128 + the signal's number.
        code = 128 - status if status > 128 else status
        limit = self._settings.get("mem_limit")
        if out_of_memory and limit and code == -SIGKILL:
            self.fault = f"killed: it went {above_limit(limit)}"
        elif out_of_memory and limit:
            # Its first process survived for a while: a watchdog, or a wrap that lost a worker.
            self.fault = f"ended after a process of it was killed {above_limit(limit)}"
        self._tell(self.end, code)

    def _started(self, host: str, pid: int) -> None:
        self.host = host
        self.pid = pid or None
        self.started.set()

    def _tell(self, what: Callable[..., object], *arguments: object) -> None:
        """Call `what` in the event loop; do nothing if the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, *arguments)


def unframed(stream: bytes) -> tuple[bytes, bytes]:
    """Return the contents of the whole frames in the engine's stream, and the rest.

    A frame has a head of eight bytes, the last four of which are the length of the contents.
    """
    contents = []
    at = 0
    while (start := at + _FRAME_HEAD) <= len(stream):
        end = start + int.from_bytes(stream[start - 4 : start])
        if end > len(stream):
            break
        contents.append(stream[start:end])
        at = end
    return b"".join(contents), stream[at:]


def _kill(container: Any, number: Signals) -> None:
    # Errors do not matter: the container has ended by itself, or the engine is gone.
    with contextlib.suppress(ChironError), engine_errors():
        container.kill(signal=int(number))


def container_usage(containers: Sequence[Container], meter: CpuMeter) -> Usage:
    """Return CPU time and memory of containers; a container that has just ended counts nothing."""
    cpu_s: dict[int, float] = {}
    since: dict[int, float] = {}
    memory = 0
    for child in containers:
        running, pid = child.running, child.pid
        if running is None or pid is None:
            continue
        with contextlib.suppress(ChironError), engine_errors():
            now = running.stats(stream=False, one_shot=True)
            cpu_s[pid] = now["cpu_stats"]["cpu_usage"]["total_usage"] / _NS_PER_S
            since[pid] = child.since
            memory += cgroup_memory_bytes(now["memory_stats"])
    return Usage(meter.millicores(cpu_s, since), memory)


def cgroup_memory_bytes(stats: dict[str, Any]) -> int:
    """Return a control group's memory without the page cache that the kernel can drop at once.

    `docker stats` does the same; the field's name differs between versions 1 and 2.
    """
    detail = stats.get("stats", {})
    droppable = detail.get("total_inactive_file", detail.get("inactive_file", 0))
    return max(0, int(stats.get("usage", 0)) - int(droppable))

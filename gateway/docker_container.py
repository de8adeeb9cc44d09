"""One container: its settings, its life in a thread (docker-py's calls block), what it uses."""

from __future__ import annotations

import asyncio
import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from signal import SIGKILL, Signals
from typing import Any

from gateway import docker_engine
from gateway.backend import Child, Order, above_limit
from gateway.docker_engine import (
    FUNCTION_LABEL,
    GATEWAY_URL_LABEL,
    NETWORK,
    OWNER_LABEL,
    engine_errors,
)
from gateway.environment import function_environment
from gateway.errors import GatewayError
from gateway.logs import LineReader, Pauses
from gateway.processes import CpuMeter, Usage

SECRETS_FOLDER = "/var/openfaas/secrets"
#: How often the kernel renews a container's share of CPU time.
_PERIOD_US = 100_000
#: Processes and threads of a container: far more than a wrap has, far less than a machine bears.
_MOST_TASKS = 4096
#: `docker logs` shows the end of the log too; the gateway keeps its own.
_LOG = {"type": "json-file", "config": {"max-size": "1m"}}
#: Where every image of the templates listens: of-watchdog, or index.py itself.
PORT = 8080
_NOT_STARTED = 127
_READ_BYTES = 1 << 16
_FRAME_HEAD = 8
_LOST = 255
_NS_PER_S = 1e9


@dataclass(frozen=True)
class Origin:
    """The gateway that containers belong to.

    Attributes:
        owner: the gateway process, as `processes.identity` says it.
        url: where it listens.
        inner_url: where containers reach it.
    """

    owner: str
    url: str
    inner_url: str


def container_settings(order: Order, image: str, origin: Origin) -> dict[str, Any]:
    """The arguments of docker-py's `containers.create` for a replica.

    The function runs as the image's user without capabilities, with the files of the image, of
    which it may change its own copy unless the deployment says read-only, and reads its secrets.
    """
    deployment = order.deployment
    environment = function_environment(deployment, SECRETS_FOLDER, origin.inner_url)
    if deployment.env_process:
        environment["fprocess"] = deployment.env_process
    settings: dict[str, Any] = {
        "image": image,
        "name": order.instance,
        "environment": environment,
        "labels": {
            **deployment.labels,
            FUNCTION_LABEL: deployment.service,
            GATEWAY_URL_LABEL: origin.url,
            OWNER_LABEL: origin.owner,
        },
        "volumes": {str(order.secrets): {"bind": SECRETS_FOLDER, "mode": "ro"}},
        "network_mode": NETWORK,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": _MOST_TASKS,
        "log_config": _LOG,
        # The gateway asks itself; an image's own check would start a process every few seconds.
        "healthcheck": {"test": ["NONE"]},
    }
    if deployment.memory:
        # The same limit for memory and swap: no swap, as on Kubernetes.
        settings |= {"mem_limit": deployment.memory, "memswap_limit": deployment.memory}
    if deployment.cpus:
        # Not as nano_cpus, which Docker refuses above the number of cores, as Kubernetes does not.
        settings |= {"cpu_period": _PERIOD_US, "cpu_quota": round(deployment.cpus * _PERIOD_US)}
    if deployment.read_only_root_filesystem:
        settings |= {"read_only": True, "tmpfs": {"/tmp": ""}}  # noqa: S108 (the container's)
    return settings


@dataclass(frozen=True)
class Ending:
    """How a container ended: its exit status, and whether the kernel killed for memory in it."""

    code: int
    out_of_memory: bool


class Container(Child):
    """A container that runs as long as its first process does, and is removed then.

    Attributes:
        image: the id of its image.
        removed: set once it is.
    """

    def __init__(
        self, client: Any, settings: dict[str, Any], health_path: str, output: LineReader
    ) -> None:
        super().__init__()
        self.port = PORT
        self.health_path = health_path
        self._client = client
        self._settings = settings
        self.image: str = settings["image"]
        self._lines = output
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._container: Any = None
        self._unwanted = False
        self.removed = asyncio.Event()
        threading.Thread(target=self._live, daemon=True, name=settings["name"]).start()

    @property
    def running(self) -> Any:
        """docker-py's object of it while it runs, else None."""
        with self._lock:
            return self._container

    def signal(self, number: Signals) -> None:
        """Signal the container's first process, or have it end as soon as it has started."""
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
            with engine_errors():
                container = self._client.containers.create(**self._settings)
        except GatewayError as error:
            self._tell(self.end, _NOT_STARTED, error.message)
        else:
            self._run(container)
            docker_engine.remove(container)
        self._tell(self.removed.set)

    def _run(self, container: Any) -> None:
        try:
            with engine_errors():
                output = container.attach_socket(params={"stdout": 1, "stderr": 1, "stream": 1})
                container.start()
                container.reload()
        except GatewayError as error:
            self._tell(self.end, _NOT_STARTED, error.message)
            return
        self._announce(container)
        try:
            self._conclude(self._watch(container, output))
        except GatewayError as error:
            self.fault = error.message
            self._tell(self.end, _LOST)
        finally:
            with self._lock:
                self._container = None

    def _announce(self, container: Any) -> None:
        """Say that it runs, and where; kill it at once if it is not wanted any more."""
        with self._lock:
            self._container = container
            unwanted = self._unwanted
        if unwanted:
            _kill(container, SIGKILL)
        network = container.attrs["NetworkSettings"]["Networks"][docker_engine.NETWORK]
        self._tell(self._started, network["IPAddress"], container.attrs["State"]["Pid"])

    def _watch(self, container: Any, output: Any) -> Ending:
        """Pass on what it writes until it ends; a container may also close its output and go on."""
        with engine_errors():
            with contextlib.closing(output):
                self._pass_on(output)
            code = container.wait(timeout=None)["StatusCode"]
            container.reload()
        return Ending(code, container.attrs["State"]["OOMKilled"])

    def _pass_on(self, output: Any) -> None:
        """Read the output; the engine holds back, and the container waits, while reading pauses."""
        from docker.utils.socket import read

        pauses = Pauses()
        rest = b""
        while received := read(output, _READ_BYTES):
            text, rest = unframed(rest + received)
            self._tell(self._lines.feed, text)
            time.sleep(pauses.after_reading_s())
        self._tell(self._lines.end)

    def _conclude(self, ending: Ending) -> None:
        # A shell's convention, and Docker's: 128 + the signal's number.
        code = 128 - ending.code if ending.code > 128 else ending.code
        limit = self._settings.get("mem_limit")
        if ending.out_of_memory and limit and code == -SIGKILL:
            self.fault = f"killed: it went {above_limit(limit)}"
        elif ending.out_of_memory and limit:
            # Its first process lived on for a while: a watchdog, or a wrap that lost another one.
            self.fault = f"ended after a process of it was killed {above_limit(limit)}"
        self._tell(self.end, code)

    def _started(self, host: str, pid: int) -> None:
        self.host = host
        self.pid = pid or None
        self.started.set()

    def _tell(self, what: Callable[..., object], *arguments: object) -> None:
        """Call `what` in the event loop; nothing if the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self._loop.call_soon_threadsafe(what, *arguments)


def unframed(stream: bytes) -> tuple[bytes, bytes]:
    """What is in the engine's frames: the contents of those that are whole, and the rest.

    A frame is eight bytes, of which the last four are the length of what follows.
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
    # It may have ended by itself, or the engine may be gone: both end it as it is.
    with contextlib.suppress(GatewayError), engine_errors():
        container.kill(signal=int(number))


def container_usage(containers: Sequence[Container], meter: CpuMeter) -> Usage:
    """CPU time and memory of containers; one that has just ended counts nothing."""
    cpu_s: dict[int, float] = {}
    since: dict[int, float] = {}
    memory = 0
    for child in containers:
        running, pid = child.running, child.pid
        if running is None or pid is None:
            continue
        with contextlib.suppress(GatewayError), engine_errors():
            now = running.stats(stream=False, one_shot=True)
            cpu_s[pid] = now["cpu_stats"]["cpu_usage"]["total_usage"] / _NS_PER_S
            since[pid] = child.since
            memory += cgroup_memory_bytes(now["memory_stats"])
    return Usage(meter.millicores(cpu_s, since), memory)


def cgroup_memory_bytes(stats: dict[str, Any]) -> int:
    """Memory of a control group without the page cache that the kernel can drop at once.

    As `docker stats` does: the field has one name in version 1 and another in version 2.
    """
    detail = stats.get("stats", {})
    droppable = detail.get("total_inactive_file", detail.get("inactive_file", 0))
    return max(0, int(stats.get("usage", 0)) - int(droppable))

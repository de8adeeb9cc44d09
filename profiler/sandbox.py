"""The process that serves a deployed function: where it is, and what the kernel says about it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psutil

from profiler.containers import docker_pids, faasd_pids, kubernetes_pids, servers
from workflow.errors import ChironError

_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ROOT = Path("/")
_DOCKER_S = 5
_PYTHON = re.compile(r"python\d+\.\d+")


@dataclass(frozen=True)
class Sandbox:
    """A function's server process."""

    pid: int

    def runtime(self) -> str:
        """The interpreter, such as ``python3.11``; empty where it does not say."""
        with contextlib.suppress(OSError):
            match = _PYTHON.search((self._proc / "exe").readlink().name)
            return match[0] if match else ""
        return ""

    def resident_mib(self) -> float:
        """Resident memory now."""
        return self._status_mib("VmRSS")

    def peak_mib(self) -> float:
        """The most resident memory that it has had since `forget_peak`."""
        return self._status_mib("VmHWM")

    def forget_peak(self) -> None:
        """Begin to look for a new peak (proc(5), clear_refs)."""
        with contextlib.suppress(OSError):
            (self._proc / "clear_refs").write_text("5")

    @property
    def _proc(self) -> Path:
        return Path("/proc") / str(self.pid)

    def _status_mib(self, field: str) -> float:
        with contextlib.suppress(OSError):
            for line in (self._proc / "status").read_text().splitlines():
                if line.startswith(f"{field}:"):
                    return int(line.split()[1]) / 1024
        return 0.0


def find_sandbox(function: str, gateway_url: str) -> Sandbox:
    """The server process of `function`, which the gateway at `gateway_url` runs on this machine.

    It may be a process of the embedded gateway, or in a container of faasd, Kubernetes or Docker.

    Raises
    ------
    ChironError
        ``no-process`` where there is none to be seen, or more than one.
    """
    found = _processes(function, gateway_url) or _in_containers(function, gateway_url)
    if len(found) == 1:
        return Sandbox(found[0])
    if found:
        fault = f"function {function} runs as {len(found)} replicas: scale it to one"
    else:
        fault = (
            f"no process of function {function} is to be seen on this machine: profile on the "
            "machine that runs it, as a user who may see its processes, or with --local"
        )
    raise ChironError("no-process", fault, functions=[function])


def _processes(function: str, gateway_url: str) -> list[int]:
    """Those of the embedded gateway, or of the harness."""
    found = {process.pid: process for process in _servers(function, gateway_url)}
    return [pid for pid, process in found.items() if _parent(process) not in found]


def _in_containers(function: str, gateway_url: str) -> list[int]:
    """Those of faasd, of Kubernetes on this node, of Docker."""

    def is_gateway(url: str) -> bool:
        return not url or _alike(url, gateway_url)

    pids = faasd_pids(function, _ROOT) or kubernetes_pids(function, _ROOT)
    if not pids and (client := _docker()) is not None:
        with contextlib.closing(client):
            pids = docker_pids(function, client, _ROOT, is_gateway)
    return servers(pids, _ROOT)


def _docker() -> Any:
    """A client of Docker's engine; None where there is neither the package nor an engine."""
    try:
        import docker
    except ImportError:
        return None
    try:
        return docker.from_env(timeout=_DOCKER_S)
    except docker.errors.DockerException:
        return None


def _servers(function: str, gateway_url: str) -> Iterator[psutil.Process]:
    """Processes that run index.py for `function`: the server, and what it forked."""
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            command = process.cmdline()
            if any(Path(part).name == "index.py" for part in command[1:3]):
                environment = process.environ()
                if _serves(environment, function, gateway_url):
                    yield process


def _serves(environment: Mapping[str, str], function: str, gateway_url: str) -> bool:
    gateway = environment.get("gateway_url", "")
    return environment.get("OPENFAAS_NAME") == function and _alike(gateway, gateway_url)


def _alike(one: str, other: str) -> bool:
    """Whether two URLs are of one gateway, seen from this machine."""
    first, second = urlsplit(one), urlsplit(other)
    hosts = {first.hostname, second.hostname}
    return first.port == second.port and (len(hosts) == 1 or hosts <= _LOOPBACK)


def _parent(process: psutil.Process) -> int | None:
    with contextlib.suppress(psutil.Error):
        return process.ppid()
    return None

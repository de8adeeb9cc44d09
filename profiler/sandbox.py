"""The process that serves a deployed function, in a container or not: its location and memory.

Containers are searched below a root folder, which may be the file tree of another machine.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from chiron.workflow.errors import ChironError
from chiron.workflow.tracing import KEY_VARIABLE

_NAMESPACE = "openfaas-fn"
#: Labels of the embedded gateway's containers: the function, and the gateway.
_FUNCTION_LABEL = "com.openfaas.function"
_GATEWAY_LABEL = "chiron.gateway.url"
_PYTHON_PROGRAM = re.compile(r"python[\d.]*t?")
_LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
_ROOT = Path("/")
_DOCKER_S = 5
_PYTHON = re.compile(r"python\d+\.\d+t?")


def servers(pids: Iterable[int], root: Path) -> list[int]:
    """Return those of `pids` that run ``python index.py``, without their forked children.

    The watchdog, their parent, is another program.
    """
    found = {pid for pid in pids if _is_server(_arguments(root, pid))}
    return sorted(pid for pid in found if _status(root, pid, "PPid") not in found)


def faasd_pids(function: str, root: Path) -> set[int]:
    """Return the processes in the faasd container of `function`, by its cgroup (version 1 or 2)."""
    for tree in ("sys/fs/cgroup/pids", "sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            listed = root / tree / _NAMESPACE / function / "cgroup.procs"
            return {int(line) for line in listed.read_text().split()}
    return set()


def kubernetes_pids(function: str, root: Path) -> set[int]:
    """Return the processes in pods of the deployment `function` on this node.

    Kubernetes names a pod, and so its host, ``DEPLOYMENT-HASH-HASH``. The path of its cgroup shows
    that a process belongs to a pod.
    """
    pod = re.compile(re.escape(function) + r"-[a-z0-9]+-[a-z0-9]{5}")
    return {
        pid
        for pid in _pids(root)
        if "kubepods" in _text(root, pid, "cgroup")
        and pod.fullmatch(_variables(root, pid).get("HOSTNAME", ""))
    }


def docker_pids(
    function: str, client: Any, root: Path, is_gateway: Callable[[str], bool]
) -> set[int]:
    """Return the processes in the containers of `function`, found with docker-py's `client`.

    They are all processes in the cgroups of the containers' first processes. A container is matched
    by its label or its name. Containers labelled with a gateway's URL count only if `is_gateway`
    accepts the URL.
    """
    ways = ({"label": f"{_FUNCTION_LABEL}={function}"}, {"name": f"^/?{re.escape(function)}$"})
    found = [
        one for way in ways for one in client.containers.list(filters=way, ignore_removed=True)
    ]
    firsts = {
        int(container.attrs["State"]["Pid"])
        for container in found
        if is_gateway(container.labels.get(_GATEWAY_LABEL, ""))
    }
    groups = {_text(root, pid, "cgroup") for pid in firsts} - {"", "0::/\n"}
    return firsts | {pid for pid in _pids(root) if _text(root, pid, "cgroup") in groups}


def _is_server(arguments: list[str]) -> bool:
    runs_python = bool(arguments) and _PYTHON_PROGRAM.fullmatch(Path(arguments[0]).name) is not None
    return runs_python and any(Path(part).name == "index.py" for part in arguments[1:3])


def _pids(root: Path) -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(each.name) for each in (root / "proc").iterdir() if each.name.isdecimal())


def _arguments(root: Path, pid: int) -> list[str]:
    return [part for part in _text(root, pid, "cmdline").split("\0") if part]


def _variables(root: Path, pid: int) -> dict[str, str]:
    pairs = (line.partition("=") for line in _text(root, pid, "environ").split("\0"))
    return {name: value for name, _, value in pairs}


def _status(root: Path, pid: int, field: str) -> int:
    """Return a number in the status of the process; 0 if missing."""
    match = re.search(rf"^{field}:\s*(\d+)", _text(root, pid, "status"), re.MULTILINE)
    return int(match[1]) if match else 0


def _text(root: Path, pid: int, file: str) -> str:
    """Return a file of the process; empty if the process has ended or is another user's."""
    try:
        return (root / "proc" / str(pid) / file).read_text(errors="replace")
    except OSError:
        return ""


@dataclass(frozen=True)
class Sandbox:
    """A function's server process."""

    pid: int

    def beside(self) -> list[int]:
        """Return the running programs that it started, without its forked processes."""
        own = _arguments(_ROOT, self.pid)
        children = [pid for pid in _pids(_ROOT) if _status(_ROOT, pid, "PPid") == self.pid]
        return [pid for pid in children if _arguments(_ROOT, pid) != own]

    def runtime(self) -> str:
        """Return the interpreter, such as ``python3.11``, with ``t`` for a build without a GIL."""
        with contextlib.suppress(OSError):
            if match := _PYTHON.search(Path(f"/proc/{self.pid}/exe").readlink().name):
                return match[0]
        return ""

    def temporary_folder(self) -> str:
        """Return its folder for temporary files, which a process without a container has alone."""
        own = _variables(_ROOT, self.pid).get("TMPDIR", "")
        return own.rstrip("/") or "/tmp"  # noqa: S108 (Python's default)

    def resident_mib(self) -> float:
        """Return the current resident memory."""
        return _status(_ROOT, self.pid, "VmRSS") / 1024

    def peak_mib(self) -> float:
        """Return the peak of resident memory since `forget_peak`."""
        return _status(_ROOT, self.pid, "VmHWM") / 1024

    def forget_peak(self) -> None:
        """Reset the peak (proc(5), clear_refs)."""
        with contextlib.suppress(OSError):
            Path(f"/proc/{self.pid}/clear_refs").write_text("5")


def find_sandbox(function: str, gateway_url: str, trace_key: str = "") -> Sandbox:
    """Return the server process of `function`, run by the gateway at `gateway_url` on this machine.

    It may be a process of the embedded gateway, or in a container of faasd, Kubernetes or Docker.
    If `trace_key` is given, processes without a container must be of its build: the local launcher
    may run two builds of a function at once.

    Raises ``no-process`` if no process is visible, or more than one.
    """
    found = _processes(function, gateway_url, trace_key) or _in_containers(function, gateway_url)
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


def _processes(function: str, gateway_url: str, trace_key: str) -> list[int]:
    """Return the processes of the embedded gateway, or of the local launcher."""

    def serves(pid: int) -> bool:
        variables = _variables(_ROOT, pid)
        ours = trace_key in ("", variables.get(KEY_VARIABLE))
        gateway = variables.get("gateway_url", "")
        return ours and variables.get("OPENFAAS_NAME") == function and _alike(gateway, gateway_url)

    return servers(filter(serves, _pids(_ROOT)), _ROOT)


def _in_containers(function: str, gateway_url: str) -> list[int]:
    """Return the processes in containers of faasd, of Kubernetes on this node, or of Docker."""

    def is_gateway(url: str) -> bool:
        return not url or _alike(url, gateway_url)

    pids = faasd_pids(function, _ROOT) or kubernetes_pids(function, _ROOT)
    if not pids and (client := _docker()) is not None:
        with contextlib.closing(client):
            pids = docker_pids(function, client, _ROOT, is_gateway)
    return servers(pids, _ROOT)


def _docker() -> Any:
    """Return a client of Docker's engine; None if the package or the engine is missing."""
    try:
        import docker
    except ImportError:
        return None
    try:
        return docker.from_env(timeout=_DOCKER_S)
    except docker.errors.DockerException:
        return None


def _alike(one: str, other: str) -> bool:
    """Return whether two URLs are of one gateway, seen from this machine."""
    first, second = urlsplit(one), urlsplit(other)
    hosts = {first.hostname, second.hostname}
    return first.port == second.port and (len(hosts) == 1 or hosts <= _LOOPBACK)

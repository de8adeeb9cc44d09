"""Processes of functions that run in containers of this machine: faasd, Kubernetes, Docker.

All of it is read below a root folder, so that another machine's tree can be looked at as well.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Protocol

_NAMESPACE = "openfaas-fn"
#: Labels of the embedded gateway's containers: which function's they are, and whose.
_FUNCTION_LABEL = "com.openfaas.function"
_GATEWAY_LABEL = "chiron.gateway.url"
_PYTHON = re.compile(r"python[\d.]*")


class DockerClient(Protocol):
    """What is needed of docker-py's client."""

    containers: Any


def servers(pids: Iterable[int], root: Path) -> list[int]:
    """Those of `pids` that run ``python index.py``, without what such a process has forked.

    The watchdog, which is their parent, is another program.
    """
    found = {pid for pid in pids if _is_server(_arguments(root, pid))}
    return sorted(pid for pid in found if _parent(root, pid) not in found)


def faasd_pids(function: str, root: Path) -> set[int]:
    """What runs in the container of `function` under faasd, by its cgroup (version 1 or 2)."""
    for tree in ("sys/fs/cgroup/pids", "sys/fs/cgroup"):
        with contextlib.suppress(OSError):
            listed = root / tree / _NAMESPACE / function / "cgroup.procs"
            return {int(line) for line in listed.read_text().split()}
    return set()


def kubernetes_pids(function: str, root: Path) -> set[int]:
    """What runs in pods of the deployment `function` on this node.

    Kubernetes calls a pod, and so its host, ``DEPLOYMENT-HASH-HASH``; that a process is a pod's
    is told by the path of its cgroup.
    """
    pod = re.compile(re.escape(function) + r"-[a-z0-9]+-[a-z0-9]{5}")
    return {
        pid
        for pid in _pids(root)
        if "kubepods" in _text(root, pid, "cgroup")
        and pod.fullmatch(_variables(root, pid).get("HOSTNAME", ""))
    }


def docker_pids(
    function: str, client: DockerClient, root: Path, is_gateway: Callable[[str], bool]
) -> set[int]:
    """What runs in Docker containers of `function`, by the cgroups of their first processes.

    A container is the function's by its label, or by its name. Those that say that they are of
    another gateway than the one whose URL `is_gateway` knows are left out.
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
    runs_python = bool(arguments) and _PYTHON.fullmatch(Path(arguments[0]).name) is not None
    return runs_python and any(Path(part).name == "index.py" for part in arguments[1:3])


def _pids(root: Path) -> Iterator[int]:
    with contextlib.suppress(OSError):
        yield from (int(each.name) for each in (root / "proc").iterdir() if each.name.isdecimal())


def _arguments(root: Path, pid: int) -> list[str]:
    return [part for part in _text(root, pid, "cmdline").split("\0") if part]


def _variables(root: Path, pid: int) -> dict[str, str]:
    pairs = (line.partition("=") for line in _text(root, pid, "environ").split("\0"))
    return {name: value for name, _, value in pairs}


def _parent(root: Path, pid: int) -> int:
    match = re.search(r"^PPid:\s*(\d+)", _text(root, pid, "status"), re.MULTILINE)
    return int(match[1]) if match else 0


def _text(root: Path, pid: int, file: str) -> str:
    """A file of the process, empty where it has ended or is somebody else's."""
    try:
        return (root / "proc" / str(pid) / file).read_text(errors="replace")
    except OSError:
        return ""

"""What a run was measured on: machine, versions, commit, gateway. Every stored result names it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import re
import subprocess
from contextlib import suppress
from pathlib import Path

import psutil

from openfaas.client import Gateway
from workflow.documents import Document

_PACKAGES = ("chiron-openfaas", "flask", "waitress", "aiohttp", "urllib3", "numba", "ray", "dask")
_HERE = Path(__file__).parent
_GIT_S = 10


class Machine(Document):
    """The machine that measures, on which a local gateway runs its functions, too.

    ``ghz`` is None where the kernel does not say.
    """

    cpu: str
    cores: int
    ghz: float | None = None
    memory_mib: int
    kernel: str
    python: str
    packages: dict[str, str]
    commit: str


class Target(Document):
    """The gateway, as it calls itself."""

    provider: str
    release: str = ""
    orchestration: str = ""


def this_machine() -> Machine:
    """What /proc, the interpreter and git say."""
    mhz = _cpuinfo("cpu MHz")
    return Machine(
        cpu=_cpuinfo("model name") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        ghz=round(float(mhz) / 1000, 3) if mhz else None,
        memory_mib=psutil.virtual_memory().total >> 20,
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=_versions(),
        commit=_commit(),
    )


def target_of(gateway: Gateway) -> Target:
    """Which gateway it is; nothing of where it is, since results are passed on."""
    provider = gateway.info().provider
    return Target(
        provider=provider.provider or "unknown",
        release=provider.version.release,
        orchestration=provider.orchestration,
    )


def _cpuinfo(name: str) -> str | None:
    """What /proc/cpuinfo says of the first core; None where it does not."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return None
    found = re.search(rf"^{name}\s*:\s*(.+)$", text, re.MULTILINE)
    return found[1].strip() if found else None


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        with suppress(importlib.metadata.PackageNotFoundError):
            versions[package] = importlib.metadata.version(package)
    return versions


def _commit() -> str:
    """The commit of the checkout, with a plus where files differ from it.

    Empty outside of one, and where this is a copy that is only installed in one.
    """
    if not _git("ls-files", "--error-unmatch", Path(__file__).name):
        return ""
    head = _git("rev-parse", "--short=12", "HEAD")
    changed = _git("status", "--porcelain", "--untracked-files=no")
    return f"{head}+" if head and changed else head


def _git(*arguments: str) -> str:
    """What git says of this folder; nothing where it fails."""
    command = ["git", "-C", str(_HERE), *arguments]
    try:
        return subprocess.check_output(
            command, stderr=subprocess.DEVNULL, text=True, timeout=_GIT_S
        ).strip()
    except (OSError, subprocess.SubprocessError):
        return ""

"""What a run was measured on: machine, versions, commit, gateway. Every stored result names it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import subprocess
from pathlib import Path

import psutil

from openfaas.client import Gateway
from workflow.documents import Document

_PACKAGES = ("chiron-openfaas", "flask", "waitress", "aiohttp", "urllib3", "numba")
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
    return Machine(
        cpu=_cpu_model(),
        cores=len(os.sched_getaffinity(0)),
        ghz=_ghz(),
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


def _cpu_model() -> str:
    for line in _cpuinfo():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _ghz() -> float | None:
    for line in _cpuinfo():
        if line.startswith("cpu MHz"):
            return round(float(line.partition(":")[2]) / 1000, 3)
    return None


def _cpuinfo() -> list[str]:
    try:
        return Path("/proc/cpuinfo").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return []


def _versions() -> dict[str, str]:
    versions = {}
    for package in _PACKAGES:
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            continue
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
    try:
        done = subprocess.run(
            ["git", "-C", str(_HERE), *arguments],
            capture_output=True,
            text=True,
            timeout=_GIT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""

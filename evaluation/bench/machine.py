"""The origin in every stored result: machine, versions of packages, commit and command."""

from __future__ import annotations

import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

import psutil

from chiron.deployment.background_load import LONG_LOOK_S, others_share
from chiron.openfaas.client import Gateway
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError

_PACKAGES = ("chiron-openfaas", "flask", "waitress", "aiohttp", "urllib3", "numba", "ray", "dask")
_HERE = Path(__file__).resolve().parent
_GIT_S = 60
#: The results that documents cite. They are not code, so new results do not make a tree dirty.
RESULTS = _HERE.parent / "results"
_DIRTY = "-dirty"
_LENGTH = 12


class Machine(Document):
    """The machine that measures, which also runs the functions of a local gateway.

    ``ghz`` and ``others`` are None if the kernel does not report them. ``others`` is the share of
    the cores that other programs used before the measurement. ``commit`` is the commit of the code.
    If the tree is dirty, "-dirty-" and a hash of the difference follow it. It is empty if the code
    is in no checkout.
    """

    cpu: str
    cores: int
    ghz: float | None = None
    memory_mib: int
    kernel: str
    python: str
    packages: dict[str, str]
    commit: str
    others: float | None = None


class Measured(Document):
    """The head of every result: the machine and the command that measured it."""

    format: int = 1
    machine: Machine
    command: str


class Target(Document):
    """The gateway, by its own description."""

    provider: str
    release: str = ""
    orchestration: str = ""


def this_machine() -> Machine:
    """Describe this machine from /proc, the interpreter and git; call it before measuring."""
    mhz, others = _cpuinfo("cpu MHz"), others_share(LONG_LOOK_S)
    return Machine(
        cpu=_cpuinfo("model name") or platform.processor() or platform.machine(),
        cores=len(os.sched_getaffinity(0)),
        ghz=round(float(mhz) / 1000, 3) if mhz else None,
        memory_mib=psutil.virtual_memory().total >> 20,
        kernel=f"{platform.system()} {platform.release()}",
        python=f"{platform.python_implementation()} {platform.python_version()}",
        packages=_versions(),
        commit=_commit(),
        others=None if others is None else round(others, 3),
    )


def no_evidence(commits: Iterable[str]) -> str | None:
    """Return why a measurement at `commits` cannot be repeated; None if it can."""
    for commit in commits:
        if not commit:
            return "the code is in no checkout, so the results name no commit"
        if _DIRTY in commit:
            return f"measured in a dirty tree ({commit}): no commit has this code"
    return None


def require_evidence(machine: Machine, output: Path) -> None:
    """Raise ``no-evidence`` if `output` is in `RESULTS` and the measurement is not repeatable."""
    reason = no_evidence([machine.commit])
    if reason and output.resolve().is_relative_to(RESULTS.resolve()):
        message = f"{output} has results that documents cite: commit all changes first"
        raise ChironError("no-evidence", f"{message}, or name another folder with -o ({reason})")


def target_of(gateway: Gateway) -> Target:
    """Return the gateway's product and release, not its address: results are published."""
    provider = gateway.info().provider
    return Target(
        provider=provider.provider or "unknown",
        release=provider.version.release,
        orchestration=provider.orchestration,
    )


def _cpuinfo(name: str) -> str | None:
    """Return the field `name` of the first core in /proc/cpuinfo; None if it is missing."""
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
    """Return the commit of the checkout, and the hash of uncommitted changes, as in `Machine`.

    Empty outside a checkout, if git fails, and for an untracked copy installed in a checkout.
    """
    if not _git("ls-files", "--error-unmatch", Path(__file__).name):
        return ""
    head, top = _git("rev-parse", "HEAD"), _git("rev-parse", "--show-toplevel")
    if not head or not top:
        return ""
    root = Path(os.fsdecode(top.strip()))
    code = ("--", ":/", f":(exclude,top){os.path.relpath(RESULTS, root)}")
    changed = _git("diff", "HEAD", "--binary", "--no-ext-diff", "--no-textconv", *code)
    added = _git("ls-files", "--others", "--exclude-standard", "--full-name", "-z", *code)
    if changed is None or added is None:
        return ""
    commit = head[:_LENGTH].decode()
    if not changed and not added:
        return commit
    difference = hashlib.sha256(changed)
    for name in sorted(added.split(b"\0")):
        difference.update(b"\0" + name + b"\0")
        with suppress(OSError):  # a nested repository or a dangling link: its name counts
            difference.update((root / os.fsdecode(name)).read_bytes())
    return f"{commit}{_DIRTY}-{difference.hexdigest()[:_LENGTH]}"


def _git(*arguments: str) -> bytes | None:
    """Return the output of git in this folder; None if it fails."""
    command = ["git", "-C", str(_HERE), *arguments]
    try:
        return subprocess.check_output(command, stderr=subprocess.DEVNULL, timeout=_GIT_S)
    except (OSError, subprocess.SubprocessError):
        return None

"""Checks for strace, and whether this process may trace another process with it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from chiron.installation.packages import Finding, install_line

#: The timeout of one attempt at tracing in seconds.
LIMIT_S = 3.0
#: Options that trace no system call: only whether tracing works matters.
_QUIET = ("-f", "-e", "trace=none", "-o", os.devnull)
_CAP_SYS_PTRACE = 19  # capabilities(7)


def check_strace(search_path: str, release: Mapping[str, str]) -> Finding:
    """Whether strace is on `search_path`; the fix is for the distribution that `release` names."""
    found = shutil.which("strace", path=search_path)
    if found:
        return Finding("strace", True, found)
    return Finding("strace", False, "not on PATH", install_line("strace", release))


def check_tracing(search_path: str, system: Path = Path("/")) -> Finding:
    """Whether tracing works: traces a command, and attaches to a running sibling process.

    `system` is the root folder whose /proc and container marks explain a refusal.
    """
    strace = shutil.which("strace", path=search_path)
    if not strace:
        return Finding("ptrace", False, "cannot be tried without strace", "install strace first")
    refusal = _trace_command(strace) or _attach(strace)
    if not refusal:
        return Finding("ptrace", True, "may trace commands and attach to running processes")
    return Finding("ptrace", False, refusal, explain_refusal(system))


def explain_refusal(system: Path) -> str:
    """Return the fix that allows tracing on the machine whose root folder is `system`."""
    scope = _read(system / "proc/sys/kernel/yama/ptrace_scope")
    marks = (system / ".dockerenv", system / "run/.containerenv")
    if any(mark.exists() for mark in marks) and not _has_ptrace_capability(system):
        return (
            "start the container with --cap-add=SYS_PTRACE "
            "(Kubernetes: securityContext.capabilities.add: [SYS_PTRACE])"
        )
    if scope in ("1", "2"):
        return "sudo sysctl -w kernel.yama.ptrace_scope=0 (or run as root)"
    if scope == "3":
        return "kernel.yama.ptrace_scope is 3 until a reboot: set it to 0 in /etc/sysctl.d, reboot"
    return "run as root, or see installation/strace.md"


def _trace_command(strace: str) -> str:
    """Why a command cannot be traced, empty if it can."""
    command = [strace, *_QUIET, sys.executable, "-S", "-c", ""]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"strace does not run: {error}"
    return "" if done.returncode == 0 else _first_line(done.stderr) or "strace fails"


def _attach(strace: str) -> str:
    """Why strace cannot attach to a process that is not its child, empty if it can."""
    sleep = [sys.executable, "-S", "-c", f"import time; time.sleep({3 * LIMIT_S})"]
    with subprocess.Popen(sleep, stdin=subprocess.DEVNULL) as target:
        try:
            return _attach_to(strace, target.pid)
        finally:
            target.kill()


def _attach_to(strace: str, pid: int) -> str:
    command = [strace, *_QUIET, "-p", str(pid)]
    try:
        tracer = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    except OSError as error:
        return f"strace does not run: {error}"
    with tracer:
        try:
            deadline = time.monotonic() + LIMIT_S
            while time.monotonic() < deadline and tracer.poll() is None:
                if _status_field(Path(f"/proc/{pid}/status"), "TracerPid") == str(tracer.pid):
                    return ""
                time.sleep(0.01)
        finally:
            tracer.kill()  # never hangs, and the kernel detaches what it traced
            _, said = tracer.communicate()
    return _first_line(said) or "strace does not attach"


def _has_ptrace_capability(system: Path) -> bool:
    effective = int(_status_field(system / "proc/self/status", "CapEff") or "0", 16)
    return bool(effective >> _CAP_SYS_PTRACE & 1)


def _status_field(status: Path, name: str) -> str:
    lines = (line.partition(":") for line in _read(status).splitlines())
    return next((value.strip() for key, _, value in lines if key == name), "")


def _read(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "")

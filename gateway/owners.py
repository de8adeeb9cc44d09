"""Which gateway process made a container, and whether that process is still there."""

from __future__ import annotations

import os
from pathlib import Path

_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = "/proc/self/ns/pid"
_ENDED = ("Z", "X")


def identity() -> str:
    """This process: the machine's boot, the pid namespace, the user, the pid, when it started."""
    return f"{_scope()}/{os.getpid()}/{_start(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether the process `owner` has ended; False for one that cannot be seen from here."""
    scope, pid, start = owner.rsplit("/", 2) if owner.count("/") >= 2 else ("", "", "")
    boot = scope.partition("/")[0]
    if boot and boot != _scope().partition("/")[0]:
        return True  # the machine has been started anew since
    return scope == _scope() and pid.isdecimal() and _start(int(pid)) != start


def _scope() -> str:
    return f"{_BOOT.read_text().strip()}/{Path(_NAMESPACE).readlink()}/{os.getuid()}"


def _start(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty if there is none, or a zombie."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""
    # The command's name, in parentheses, may hold blanks: count fields from its end.
    state, *fields = stat[stat.rindex(")") + 2 :].split()
    return "" if state in _ENDED else fields[18]

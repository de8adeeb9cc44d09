"""Reads /proc: which processes are below another, what memory and CPU time they take; kills."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from collections.abc import Container, Iterable
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_POLL_S = 0.001


@dataclass(frozen=True)
class Entry:
    """One process: its parent, its state, and the CPU time of it and its reaped children."""

    parent: int
    state: str
    cpu_s: float


def snapshot() -> dict[int, Entry]:
    """Every process there is now, by pid."""
    table = {}
    for folder in _PROC.iterdir():
        if folder.name.isdigit() and (entry := _entry(folder)) is not None:
            table[int(folder.name)] = entry
    return table


def exists(pid: int) -> bool:
    """Whether there is a process `pid`, be it a zombie."""
    return (_PROC / str(pid)).exists()


def _entry(folder: Path) -> Entry | None:
    try:
        stat = (folder / "stat").read_text(encoding="utf-8", errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The command's name, in parentheses, may hold blanks: count fields from its end.
    fields = stat[stat.rindex(")") + 2 :].split()
    ticks = sum(int(field) for field in fields[11:15])
    return Entry(int(fields[1]), fields[0], ticks / _TICKS_PER_S)


def descendants(roots: Iterable[int], table: dict[int, Entry]) -> set[int]:
    """Those of `roots` that run, and all below them."""
    children: dict[int, list[int]] = {}
    for pid, entry in table.items():
        children.setdefault(entry.parent, []).append(pid)
    found: set[int] = set()
    frontier = list(roots)
    while frontier:
        pid = frontier.pop()
        if pid not in found and pid in table:
            found.add(pid)
            frontier += children.get(pid, [])
    return found


def children() -> list[int]:
    """The pids of this process's children, also of those that have ended and are not reaped."""
    try:
        tasks = (_PROC / "self" / "task").iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid, entry in snapshot().items() if entry.parent == os.getpid()]


def reap() -> dict[int, int]:
    """Reap the children that have ended: their exit statuses, negative for signals, by pid."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def kill_children(spared: Container[int] = ()) -> bool:
    """Kill this process's children but those `spared`; returns whether there are any others."""
    found = [pid for pid in children() if pid not in spared]
    for pid in found:
        os.kill(pid, signal.SIGKILL)
    return bool(found)


def kill_descendants() -> None:
    """Kill and reap everything below this process, which adopts orphans.

    Only its children need be looked for, as what is below them comes up when they end. That is
    fast enough for a process that forks and ends in a loop, of which a pid is never old.
    """
    while kill_children():
        if not reap():
            time.sleep(_POLL_S)


def resident_bytes(pids: Iterable[int]) -> int:
    """Resident memory of `pids`, pages shared between them counted once for each."""
    return sum(_resident_bytes(pid) for pid in pids)


def _resident_bytes(pid: int) -> int:
    try:
        return int((_PROC / str(pid) / "statm").read_text().split()[1]) * _PAGE_BYTES
    except (FileNotFoundError, ProcessLookupError):
        return 0


def proportional_bytes(pids: Iterable[int]) -> int:
    """Proportional set size of `pids`: a page shared by n processes counts 1/n in each."""
    return sum(_proportional_bytes(pid) for pid in pids)


def _proportional_bytes(pid: int) -> int:
    try:
        rollup = (_PROC / str(pid) / "smaps_rollup").read_text()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    for line in rollup.splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    return 0

"""Processes of this machine: identity, descendants, usage and kills; starts the gateway's own."""

from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import sys
import time
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import subprocess

#: The variables that the gateway and its supervisors inherit: locations and the locale.
_OWN = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "HOME", "CHIRON_HOME", "TMPDIR"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
)

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)
_BOOT = Path("/proc/sys/kernel/random/boot_id")
_NAMESPACE = "/proc/self/ns/pid"
_ENDED = ("Z", "X")
_PROC = Path("/proc")
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_POLL_S = 0.001
#: The most bytes of /proc/PID/stat: 52 numbers and a name of at most 64 bytes.
_LONGEST_STAT = 2048


def start_own(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process of the gateway, with further `options` of Popen.

    Its environment omits variables that may hold credentials: functions of the same user can read
    the initial environment of each of its processes.
    """
    import subprocess  # not in the supervisor of containers, to save memory

    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=Path(__file__).absolute().parents[2],  # the folder of the package
        env={name: os.environ[name] for name in _OWN if name in os.environ},
        start_new_session=True,  # ^C goes to the client, which then stops the gateway
        **options,
    )


def _prctl(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0):
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def signal_at_parents_end(signal: int) -> None:
    """Have the kernel send this process `signal` when the thread that started it ends."""
    _prctl(_PR_SET_PDEATHSIG, signal)


def forbid_inspection() -> None:
    """Let only root read this process's environment, memory and descriptors, or trace it.

    Forked children inherit this until they exec another program.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """Prevent this process and its descendants from gaining privileges by exec."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def identity() -> str:
    """Return this process's boot, pid namespace, user, pid and start time as one string."""
    return f"{_scope()}/{os.getpid()}/{_start_ticks(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Return whether the process `owner` has ended; False if it cannot be seen from here."""
    scope, pid, start = owner.rsplit("/", 2) if owner.count("/") >= 2 else ("", "", "")
    boot = scope.partition("/")[0]
    if boot and boot != _scope().partition("/")[0]:
        return True  # the machine has been rebooted since
    return scope == _scope() and pid.isdecimal() and _start_ticks(int(pid)) != start


def _scope() -> str:
    return f"{_BOOT.read_text().strip()}/{Path(_NAMESPACE).readlink()}/{os.getuid()}"


def _start_ticks(pid: int) -> str:
    """Return a process's start in clock ticks since boot; empty if it has ended or is a zombie."""
    entry = _entry(pid)
    return "" if entry is None or entry.state in _ENDED else entry.started


@dataclass(frozen=True)
class Entry:
    """One process: its parent, state, start (clock ticks since boot), CPU time and resident memory.

    The CPU time includes the children that it has reaped. Resident memory counts shared pages
    whole.
    """

    parent: int
    state: str
    started: str
    cpu_s: float
    resident_bytes: int


def snapshot(pids: Iterable[int] | None = None) -> dict[int, Entry]:
    """Return the running processes, or those of `pids` that run, by pid."""
    pids = _listed() if pids is None else pids
    return {pid: entry for pid in pids if (entry := _entry(pid)) is not None}


def _listed() -> set[int]:
    with os.scandir(_PROC) as folders:
        return {int(folder.name) for folder in folders if folder.name.isdigit()}


class DescendantSampler:
    """Samples this process and its descendants repeatedly.

    A process outside stays outside: orphans below this process become its children, as it adopts
    them. So each outside process is read only once, and a sample costs no more on a busy machine.
    """

    def __init__(self) -> None:
        self._outside: set[int] = set()

    def snapshot(self) -> dict[int, Entry]:
        """Return the processes below this process, by pid, and new processes outside."""
        listed = _listed()
        self._outside &= listed
        table = snapshot(listed - self._outside)
        # A process that was read while its parent ended is not yet known to be outside.
        tops = [pid for pid, each in table.items() if each.parent in self._outside | {0}]
        self._outside |= descendants(tops, table) - descendants([os.getpid()], table)
        return table


def _entry(pid: int) -> Entry | None:
    # Without a file object: the supervisor reads many of these files four times a second.
    try:
        descriptor = os.open(f"/proc/{pid}/stat", os.O_RDONLY)
    except FileNotFoundError:
        return None
    try:
        stat = os.read(descriptor, _LONGEST_STAT)
    except ProcessLookupError:
        return None
    finally:
        os.close(descriptor)
    # The command's name, in parentheses, may hold blanks: count fields from its end.
    fields = stat[stat.rindex(b")") + 2 :].split()
    ticks = sum(map(int, fields[11:15]))
    state, parent, started, pages = fields[0], fields[1], fields[19], fields[21]
    used_s, used_bytes = ticks / _TICKS_PER_S, int(pages) * _PAGE_BYTES
    return Entry(int(parent), state.decode(), started.decode(), used_s, used_bytes)


def descendants(roots: Iterable[int], table: dict[int, Entry]) -> set[int]:
    """Return those of `roots` that run, and all processes below them."""
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
    """Return the pids of this process's children, including zombies."""
    try:
        tasks = (_PROC / "self" / "task").iterdir()
        return [int(pid) for task in tasks for pid in (task / "children").read_text().split()]
    except FileNotFoundError:  # a kernel without CONFIG_PROC_CHILDREN
        return [pid for pid, entry in snapshot().items() if entry.parent == os.getpid()]


def reap() -> dict[int, int]:
    """Reap the children that have ended; return exit statuses by pid, negative for signals."""
    ended = {}
    with contextlib.suppress(ChildProcessError):
        while (found := os.waitpid(-1, os.WNOHANG))[0]:
            ended[found[0]] = os.waitstatus_to_exitcode(found[1])
    return ended


def kill_children(spared: Container[int] = ()) -> bool:
    """Kill this process's children except those in `spared`; return whether there were any."""
    found = [pid for pid in children() if pid not in spared]
    for pid in found:
        with contextlib.suppress(ProcessLookupError):  # another thread has reaped it
            os.kill(pid, signal.SIGKILL)
    return bool(found)


def kill_descendants() -> None:
    """Kill and reap all processes below this process, which adopts orphans.

    Killing children is enough, as their own children become children of this process when they end.
    It is fast enough for a process that forks and exits in a loop, whose pid is always new.
    """
    while kill_children():
        if not reap():
            time.sleep(_POLL_S)


def proportional_bytes(pids: Iterable[int]) -> int:
    """Return the proportional set size of `pids`: n processes count 1/n of a shared page each."""
    return 1024 * sum(_field(_PROC / str(pid) / "smaps_rollup", "Pss:") for pid in pids)


def killed_for_memory() -> int:
    """Return how many processes of this machine the kernel has killed for lack of memory."""
    return _field(_PROC / "vmstat", "oom_kill")


def _field(path: Path, name: str) -> int:
    """Return the number after `name` in a table of /proc; 0 if unreadable or missing."""
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0


@dataclass(frozen=True)
class Usage:
    """CPU in thousandths of a core since the last sample, and memory in bytes."""

    millicores: float
    memory_bytes: int


class CpuMeter:
    """Stores the CPU time of each replica at its last sample, to compute the usage since then."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}

    def millicores(self, cpu_s: Mapping[int, float], since: Mapping[int, float]) -> float:
        """Return the replicas' mean usage since the last sample, or since their start.

        Args:
            cpu_s: the CPU time so far in seconds, by the pid of each replica's first process.
            since: their start (time.monotonic), by the same pid.
        """
        now = time.monotonic()
        cores = 0.0
        for pid, total in cpu_s.items():
            looked, before = self._last.get(pid, (since[pid], 0.0))
            cores += max(0.0, total - before) / max(now - looked, 1e-3)
            self._last[pid] = (now, total)
        self._last = {pid: at for pid, at in self._last.items() if (_PROC / str(pid)).exists()}
        return cores * 1000


def usage_of_trees(roots: Mapping[int, float], meter: CpuMeter) -> Usage:
    """Return the CPU usage and proportional set size of functions' process trees.

    Args:
        roots: the start (time.monotonic) of each init process, by pid.
        meter: the last samples.
    """
    table = snapshot()
    trees = {root: descendants([root], table) for root in roots}
    # The init process's CPU time counts, as it includes reaped children; its memory does not.
    cpu_s = {root: sum(table[pid].cpu_s for pid in pids) for root, pids in trees.items()}
    memory = sum(proportional_bytes(pids - {root}) for root, pids in trees.items())
    return Usage(meter.millicores(cpu_s, roots), memory)

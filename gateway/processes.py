"""Processes of this machine: identity, descendants, usage, kills; those of the gateway's own."""

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

#: What the gateway and its supervisors take from the process that starts them: where things are.
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
#: Bytes; /proc/PID/stat has 52 numbers and a name of 64 bytes at most.
_LONGEST_STAT = 2048


def start_own(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
    """Start a process of the gateway's own, with further `options` of Popen.

    Its environment has no variable that may be a credential: functions can be of the same user,
    who may read every process's first environment.
    """
    import subprocess  # not in the supervisor of containers, which shall take little memory

    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        cwd=Path(__file__).absolute().parents[2],  # what has the package
        env={name: os.environ[name] for name in _OWN if name in os.environ},
        start_new_session=True,  # ^C is for the client, which then stops the gateway
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

    Holds for what it forks too, until that becomes another program by exec.
    """
    _prctl(_PR_SET_DUMPABLE, 0)


def forbid_new_privileges() -> None:
    """Have no exec give this process, or any below it, more privileges than it has."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def identity() -> str:
    """This process: the machine's boot, the pid namespace, the user, the pid, when it started."""
    return f"{_scope()}/{os.getpid()}/{_start_ticks(os.getpid())}"


def is_gone(owner: str) -> bool:
    """Whether the process `owner` has ended; False for one that cannot be seen from here."""
    scope, pid, start = owner.rsplit("/", 2) if owner.count("/") >= 2 else ("", "", "")
    boot = scope.partition("/")[0]
    if boot and boot != _scope().partition("/")[0]:
        return True  # the machine has been started anew since
    return scope == _scope() and pid.isdecimal() and _start_ticks(int(pid)) != start


def _scope() -> str:
    return f"{_BOOT.read_text().strip()}/{Path(_NAMESPACE).readlink()}/{os.getuid()}"


def _start_ticks(pid: int) -> str:
    """When a process started, in clock ticks since boot; empty if there is none, or a zombie."""
    entry = _entry(pid)
    return "" if entry is None or entry.state in _ENDED else entry.started


@dataclass(frozen=True)
class Entry:
    """One process: its parent, its state, when it started (clock ticks since boot), what it uses.

    The CPU time includes that of the children which it has reaped. Pages shared with other
    processes count whole in its resident memory.
    """

    parent: int
    state: str
    started: str
    cpu_s: float
    resident_bytes: int


def snapshot(pids: Iterable[int] | None = None) -> dict[int, Entry]:
    """Every process there is now, by pid; or those of `pids` that there are."""
    pids = _listed() if pids is None else pids
    return {pid: entry for pid in pids if (entry := _entry(pid)) is not None}


def _listed() -> set[int]:
    with os.scandir(_PROC) as folders:
        return {int(folder.name) for folder in folders if folder.name.isdigit()}


class Below:
    """Looks at this process and what is below it, again and again.

    What is elsewhere stays elsewhere, as orphans from below come to this process, which adopts
    them. So it is read once, and a look costs no more on a machine with many other processes.
    """

    def __init__(self) -> None:
        self._elsewhere: set[int] = set()

    def snapshot(self) -> dict[int, Entry]:
        """The processes below this one, by pid, and any that have come elsewhere since."""
        listed = _listed()
        self._elsewhere &= listed
        table = snapshot(listed - self._elsewhere)
        # Not known to be elsewhere: what was read while its parent ended.
        tops = [pid for pid, each in table.items() if each.parent in self._elsewhere | {0}]
        self._elsewhere |= descendants(tops, table) - descendants([os.getpid()], table)
        return table


def _entry(pid: int) -> Entry | None:
    # Without a file object, as the supervisor reads many of them four times a second.
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
        with contextlib.suppress(ProcessLookupError):  # another thread has reaped it
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


def proportional_bytes(pids: Iterable[int]) -> int:
    """Proportional set size of `pids`: a page shared by n processes counts 1/n in each."""
    return 1024 * sum(_field(_PROC / str(pid) / "smaps_rollup", "Pss:") for pid in pids)


def killed_for_memory() -> int:
    """How many processes of this machine the kernel has killed for want of memory so far."""
    return _field(_PROC / "vmstat", "oom_kill")


def _field(path: Path, name: str) -> int:
    """The number after `name` in a table of /proc; 0 where that cannot be read or has no such."""
    with contextlib.suppress(OSError):
        for line in path.read_text().splitlines():
            if line.startswith(f"{name} "):
                return int(line.split()[1])
    return 0


@dataclass(frozen=True)
class Usage:
    """CPU in thousandths of a core since the last look, and memory in bytes."""

    millicores: float
    memory_bytes: int


class CpuMeter:
    """Remembers the CPU time at the last look at each replica, to tell what came since."""

    def __init__(self) -> None:
        self._last: dict[int, tuple[float, float]] = {}

    def millicores(self, cpu_s: Mapping[int, float], since: Mapping[int, float]) -> float:
        """What replicas used on average since the last look, or since they started.

        Args:
            cpu_s: for each replica's first process the CPU time so far, in seconds.
            since: and when it started (time.monotonic).
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
    """Usage of functions' processes: CPU time, and proportional set size.

    Args:
        roots: for each init process its pid and when it started (time.monotonic).
        meter: what remembers the last look.
    """
    table = snapshot()
    trees = {root: descendants([root], table) for root in roots}
    # A function's CPU time includes what its init process has reaped for it; its memory is not.
    cpu_s = {root: sum(table[pid].cpu_s for pid in pids) for root, pids in trees.items()}
    memory = sum(proportional_bytes(pids - {root}) for root, pids in trees.items())
    return Usage(meter.millicores(cpu_s, roots), memory)

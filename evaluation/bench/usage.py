"""What a deployment uses: CPU time and memory of its sandboxes, and of what serves beside them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from chiron.profiler.sandbox import find_sandbox
from chiron.workflow.errors import ChironError

#: Processes that start or end between two looks make another look necessary.
_LOOKS = 20
_PROPORTIONAL = ("Pss_Anon:", "Pss_Shmem:")


class Sandboxes(NamedTuple):
    """The processes of a deployment's sandboxes: of the template's server and all below it."""

    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        """Seconds of CPU time so far, those of ended children included."""
        return cpu_s(self.pids)

    def memory_mib(self) -> float:
        """Memory now, every page once."""
        return memory_mib(trees(self.pids))


class Around(NamedTuple):
    """Meters of what serves requests beside a variant's own sandboxes.

    Each is None where it is not to be seen: ``supporting`` also where the workflow has no such
    functions, ``gateway`` where its process is not the one that has started the sandboxes.
    """

    supporting: Sandboxes | None
    gateway: psutil.Process | None

    def cpu_s(self, sandboxes: Sandboxes) -> dict[str, float]:
        """Seconds of CPU time so far by part."""
        found = {"sandboxes": sandboxes.cpu_s(), "client": _alone_s(psutil.Process())}
        if self.supporting:
            found["supporting functions"] = self.supporting.cpu_s()
        if self.gateway:
            found["gateway"] = _alone_s(self.gateway)
        return found


def meter(names: Sequence[str], gateway_url: str) -> Sandboxes | None:
    """What tells the usage of the functions `names` behind `gateway_url`.

    None where it cannot be read from here, as of another machine or another user: nothing is
    guessed.
    """
    try:
        return Sandboxes(tuple(find_sandbox(name, gateway_url).pid for name in names))
    except ChironError:
        return None


def around(supporting: Sequence[str], gateway_url: str, sandboxes: Sandboxes | None) -> Around:
    """The meters of the gateway at `gateway_url`, which runs `sandboxes` and `supporting`."""
    beside = meter(supporting, gateway_url) if supporting else None
    return Around(beside, _gateway(sandboxes) if sandboxes else None)


def _gateway(sandboxes: Sandboxes) -> psutil.Process | None:
    """The ancestor of a sandbox that is an embedded gateway, whose sockets only root may see."""
    with suppress(psutil.Error):
        for ancestor in psutil.Process(sandboxes.pids[0]).parents():
            if ancestor.cmdline()[1:3] == ["-m", "chiron.gateway"]:
                return ancestor
    return None


def trees(pids: Collection[int]) -> dict[int, psutil.Process]:
    """The processes `pids` and all below them; ``process-gone`` where one of `pids` has ended.

    One look at all processes does for every root, which ``children(recursive=True)`` takes each.
    """
    below: dict[int, list[psutil.Process]] = {}
    found: dict[int, psutil.Process] = {}
    for process in psutil.process_iter(["ppid"]):
        below.setdefault(process.info["ppid"], []).append(process)
        if process.pid in pids:
            found[process.pid] = process
    if len(found) < len(set(pids)):
        raise _gone()
    frontier = list(found)
    while frontier:
        for child in below.get(frontier.pop(), ()):
            if child.pid not in found:
                found[child.pid] = child
                frontier.append(child.pid)
    return found


def cpu_s(pids: Collection[int]) -> float:
    """Seconds of CPU time that the trees below `pids` have used since they were started.

    A child that has ended is counted by its parent once that has waited for it (proc(5): cutime,
    cstime). What ended as an orphan is not to be found any more.

    Raises ``process-gone`` where one of `pids` has ended, or the trees do not come to rest.
    """
    before = trees(pids)
    for _ in range(_LOOKS):
        try:
            times = [process.cpu_times() for process in before.values()]
        except psutil.NoSuchProcess:
            times = []
        after = trees(pids)
        if times and after.keys() == before.keys():
            return sum(t.user + t.system + t.children_user + t.children_system for t in times)
        before = after
    raise _gone()


def memory_mib(pids: Iterable[int]) -> float:
    """Memory of the processes `pids`, every page once; those that end meanwhile are left out.

    The proportional set size of a process depends on what else on the machine has mapped the
    interpreter's libraries, so it shrinks with every further sandbox. Anonymous pages are shared
    within a sandbox alone: for them it is right. Of a file's pages count as many as that process
    has resident that has the most of them.
    """
    anonymous_kib = 0
    files: dict[str, float] = {}
    for pid in pids:
        with suppress(psutil.Error, OSError):
            rollup = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
            rows = (line.split() for line in rollup.splitlines())
            anonymous_kib += sum(int(row[1]) for row in rows if row and row[0] in _PROPORTIONAL)
            for each in psutil.Process(pid).memory_maps(grouped=True):
                if each.path.startswith("/"):
                    files[each.path] = max(each.rss - each.anonymous, files.get(each.path, 0.0))
    return anonymous_kib / 1024 + sum(files.values()) / 2**20


def _alone_s(process: psutil.Process) -> float:
    """CPU time of the process without those that it has started."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _gone() -> ChironError:
    message = "a sandbox's process has ended, or starts others without an end: see its logs"
    return ChironError("process-gone", message, status=502)

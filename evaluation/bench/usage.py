"""Meters CPU time and memory of a deployment's sandboxes, and CPU time of client and gateway."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from chiron.profiler.sandbox import find_sandbox
from chiron.workflow.errors import ChironError

#: The most readings of CPU times: a reading is repeated if processes started or ended meanwhile.
_LOOKS = 20
_PROPORTIONAL = ("Pss_Anon:", "Pss_Shmem:")


class Sandboxes(NamedTuple):
    """The process trees of a deployment's sandboxes; their roots are the template's servers."""

    pids: tuple[int, ...]

    def cpu_s(self) -> float:
        """Return the seconds of CPU time so far, including ended children."""
        return cpu_s(self.pids)

    def memory_mib(self) -> float:
        """Return the memory now in MiB; a shared page counts once."""
        return memory_mib(trees(self.pids))


class OtherMeters(NamedTuple):
    """Meters of the other processes that serve a variant's requests.

    A meter is None if its processes are not visible. ``supporting`` is also None if the workflow
    has no supporting functions, ``gateway`` if another process started the sandboxes.
    """

    supporting: Sandboxes | None
    gateway: psutil.Process | None

    def cpu_s(self, sandboxes: Sandboxes) -> dict[str, float]:
        """Return the seconds of CPU time so far by part, including this client."""
        found = {"sandboxes": sandboxes.cpu_s(), "client": _alone_s(psutil.Process())}
        if self.supporting:
            found["supporting functions"] = self.supporting.cpu_s()
        if self.gateway:
            found["gateway"] = _alone_s(self.gateway)
        return found


def meter(names: Sequence[str], gateway_url: str) -> Sandboxes | None:
    """Return the meter of the functions `names` behind `gateway_url`.

    None if a process is not visible here: it may be on another machine or of another user. None
    also if a function has several replicas.
    """
    try:
        return Sandboxes(tuple(find_sandbox(name, gateway_url).pid for name in names))
    except ChironError:
        return None


def other_meters(
    supporting: Sequence[str], gateway_url: str, sandboxes: Sandboxes | None
) -> OtherMeters:
    """Return the meters of the gateway that runs `sandboxes`, and of its functions `supporting`."""
    beside = meter(supporting, gateway_url) if supporting else None
    return OtherMeters(beside, _gateway(sandboxes) if sandboxes else None)


def _gateway(sandboxes: Sandboxes) -> psutil.Process | None:
    """Return the embedded gateway among a sandbox's ancestors: only root may see its sockets."""
    with suppress(psutil.Error):
        for ancestor in psutil.Process(sandboxes.pids[0]).parents():
            if ancestor.cmdline()[1:3] == ["-m", "chiron.gateway"]:
                return ancestor
    return None


def trees(pids: Collection[int]) -> dict[int, psutil.Process]:
    """Return the processes `pids` and their descendants; ``process-gone`` if one of `pids` ended.

    One scan of all processes serves all roots; ``children(recursive=True)`` scans for each root.
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
    """Return the seconds of CPU time that the process trees of `pids` have used since their start.

    A parent counts an ended child after waiting for it (proc(5): cutime, cstime). The time of
    ended orphans is lost.

    Raises ``process-gone`` if one of `pids` has ended, or the trees change at every reading.
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
    """Return the memory of the processes `pids` in MiB; a shared page counts once.

    Processes that end meanwhile are left out. Anonymous pages are shared within one sandbox only,
    so their proportional set size is right. That of files is not: it shrinks with every further
    sandbox that maps the interpreter's libraries. For a file, the largest resident size of any
    process counts.
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
    """Return the seconds of CPU time of the process without its children."""
    times = process.cpu_times()
    return float(times.user + times.system)


def _gone() -> ChironError:
    message = "a sandbox's process has ended, or starts others without an end: see its logs"
    return ChironError("process-gone", message, status=502)

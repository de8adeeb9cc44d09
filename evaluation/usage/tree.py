"""CPU time of processes and of all that they have started, those included that have ended since."""

from __future__ import annotations

from collections.abc import Collection

import psutil

from workflow.errors import ChironError

#: Processes that start or end between two looks make another look necessary.
_LOOKS = 20


def trees(pids: Collection[int]) -> dict[int, psutil.Process]:
    """The processes `pids` and all below them; ``process-gone`` where one of `pids` has ended."""
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

    Raises
    ------
    ChironError
        ``process-gone`` where one of `pids` has ended, or the trees do not come to rest.
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


def _gone() -> ChironError:
    message = "a sandbox's process has ended, or starts others without an end: see its logs"
    return ChironError("process-gone", message, status=502)

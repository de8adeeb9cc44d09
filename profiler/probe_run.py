"""One run of a handler as the GIL probe saw it: consecutive stretches of one kind each.

The probe (`wrap.observe.gil_probe`) requests the GIL some four times a millisecond. If it has to
wait, another thread held the GIL. Otherwise the CPU clocks of the handler's threads, and whether
they are running, distinguish computing from waiting.

The probe is late by the time that the kernel takes to wake it, which on a busy machine exceeds the
times of interest. Clocks independent of the probe show what happened meanwhile. The time in which
the handler's thread had no core is left out. The rest is waiting, except for the CPU time of the
function.
"""

from __future__ import annotations

import os
import platform
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low
from typing import Any

from chiron.workflow.profile import PeriodKind

RUNNING = "running"
#: The probe may miss shorter times: two of its ticks, in milliseconds.
SHORTEST_SEEN_MS = 0.5
#: The longest sleep of the probe, in milliseconds.
LONGEST_SLEEP_MS = 0.2
#: The default delay of the probe beyond its sleep, in milliseconds.
USUAL_DELAY_MS = 0.05
#: A negligible time, in milliseconds, to divide by instead of 0.
INSTANT_MS = 1e-6
#: Lower values are 1: a thread that releases the GIL briefly computes beside the next holder.
LEAST_PARALLELISM = 1.1
#: The cores of this machine, the limit of parallelism.
CORES = os.cpu_count() or 1
#: Names of the system calls in which functions usually wait, by machine and number.
# fmt: off
_BY_MACHINE = {
    "x86_64": {
        0: "read", 1: "write", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv",
        20: "writev", 23: "select", 34: "pause", 35: "nanosleep", 40: "sendfile",
        42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 61: "wait4", 73: "flock", 74: "fsync", 75: "fdatasync",
        202: "futex", 230: "clock_nanosleep", 232: "epoll_wait", 247: "waitid",
        257: "openat", 270: "pselect6", 271: "ppoll", 281: "epoll_pwait", 288: "accept4",
    },
    "aarch64": {
        22: "epoll_pwait", 32: "flock", 56: "openat", 63: "read", 64: "write", 65: "readv",
        66: "writev", 67: "pread64", 68: "pwrite64", 71: "sendfile", 72: "pselect6",
        73: "ppoll", 82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex",
        101: "nanosleep", 115: "clock_nanosleep", 202: "accept", 203: "connect",
        206: "sendto", 207: "recvfrom", 211: "sendmsg", 212: "recvmsg", 242: "accept4",
        260: "wait4",
    },
}
# fmt: on


def parallelism(cores: float) -> float:
    """Return the `chiron.workflow.profile.Period.parallelism` for this number of busy `cores`."""
    return min(CORES, cores) if cores >= LEAST_PARALLELISM else 1.0


@dataclass(frozen=True)
class Tick:
    """A moment at which the probe has the GIL."""

    #: Time since the handler's begin, less the time in which its thread had no core.
    at_ms: float
    #: CPU time of the handler's threads until then.
    cpu_ms: float
    #: The intended sleep of the probe since the previous tick.
    slept_ms: float
    #: Whether the probe had to wait for the GIL.
    waited: bool
    #: ``running``, or the number of the system call of the handler's thread.
    state: str
    #: The total time without a core until then.
    kept_ms: float
    #: CPU time of the processes that the function started until then.
    processes_ms: float


@dataclass(frozen=True)
class Stretch:
    """The function does one `kind` of work from `start_ms` to `end_ms` after its begin.

    `cpu_ms` is the CPU time of its threads and of the processes that it started. It includes their
    time while the function itself waits for them.
    """

    kind: PeriodKind
    start_ms: float
    end_ms: float
    syscall: str | None = None
    cpu_ms: float = 0.0

    @property
    def parallelism(self) -> float:
        """The mean number of busy cores; below 1 only for waiting."""
        cores = self.cpu_ms / (self.end_ms - self.start_ms)
        if self.kind == "block":
            return cores
        return parallelism(cores) if self.end_ms - self.start_ms >= SHORTEST_SEEN_MS else 1.0


@dataclass(frozen=True)
class ProbeRun:
    """The stretches that cover one run of the function, in order and without gap."""

    duration_ms: float
    stretches: tuple[Stretch, ...]

    def time_ms(self, kind: PeriodKind) -> float:
        return sum(s.end_ms - s.start_ms for s in self.stretches if s.kind == kind)


def read_ticks(rows: Iterable[Sequence[Any]]) -> list[Tick]:
    """Return the ticks in a timeline's row, from the handler's begin to its end.

    Raises ValueError, TypeError, IndexError if the rows are no ticks.
    """
    rows = list(rows)
    states = [row[4] for row in rows]
    # While begin and end read their clocks, the probe may add ticks before and after them.
    within = rows[states.index("begin") : states.index("end") + 1]
    ticks = [
        Tick(
            at_ms=(us - delay) / 1000,
            cpu_ms=cpu / 1000,
            slept_ms=slept / 1000,
            waited=bool(waited),
            state=state,
            kept_ms=kept / 1000,
            processes_ms=processes / 1000,
        )
        for us, cpu, slept, waited, state, delay, kept, processes in within
    ]
    if not ticks:
        raise ValueError("the ticks end before they begin")
    return _in_order(ticks)


def _in_order(ticks: Sequence[Tick]) -> list[Tick]:
    """Return `ticks` relative to the first, in ascending order of time.

    The kernel counts the time of a thread without a core only when the thread has a core again. So
    a tick within that time seems later than its successor.
    """
    first_ms = ticks[0].at_ms
    latest_ms = ticks[-1].at_ms
    found = []
    for tick in reversed(ticks):
        latest_ms = max(first_ms, min(latest_ms, tick.at_ms))
        found.append(replace(tick, at_ms=latest_ms - first_ms))
    return found[::-1]


def probe_run(ticks: Sequence[Tick]) -> ProbeRun:
    """Return the stretches between `ticks`; the first tick is the run's begin, the last its end."""
    delay_ms = _delay_ms(ticks)
    stretches: list[Stretch] = []
    for before, after in pairwise(ticks):
        position = before.at_ms
        threads_ms = max(0.0, after.cpu_ms - before.cpu_ms)
        cores = max(1.0, threads_ms / max(INSTANT_MS, after.at_ms - before.at_ms))
        processes_ms = max(0.0, after.processes_ms - before.processes_ms)
        beside = processes_ms / max(INSTANT_MS, after.at_ms - before.at_ms)
        for kind, duration, syscall in _between(before, after, delay_ms, stretches[-1:]):
            if duration <= 0:
                continue
            cpu_ms = duration * (beside if kind == "block" else beside + cores)
            stretch = Stretch(kind, position, position + duration, syscall, cpu_ms)
            position = stretch.end_ms
            if stretches and (stretches[-1].kind, stretches[-1].syscall) == (kind, syscall):
                one = stretches.pop()
                cpu_ms += one.cpu_ms
                stretch = Stretch(kind, one.start_ms, stretch.end_ms, syscall, cpu_ms)
            stretches.append(stretch)
    return ProbeRun(ticks[-1].at_ms, tuple(stretches))


def _delay_ms(ticks: Sequence[Tick]) -> float:
    """Return the median delay of the probe beyond its intended sleep while the GIL is free."""
    free = [
        after.at_ms - before.at_ms - after.slept_ms
        for before, after in pairwise(ticks[1:-1])
        if not after.waited
    ]
    return max(0.0, median_low(free)) if free else USUAL_DELAY_MS


def _between(
    before: Tick, after: Tick, delay_ms: float, last: Sequence[Stretch]
) -> Iterator[tuple[PeriodKind, float, str | None]]:
    """Yield kind, duration and system call of the activities between two ticks."""
    whole = after.at_ms - before.at_ms
    computing = min(whole, max(0.0, after.cpu_ms - before.cpu_ms))
    idle = whole - computing
    lately = _state(before, last)
    waited_before = idle if lately == "block" else 0.0
    call = syscall_name(before.state)
    if after.waited or after.state == "end":
        kept_ms = after.kept_ms - before.kept_ms
        asleep = min(whole, (after.slept_ms or LONGEST_SLEEP_MS) + delay_ms + kept_ms)
        if not after.waited:
            asleep = whole  # an awake probe would have produced a tick
        waited_before = min(waited_before, asleep)
        # A wait at the tick may have begun long before the probe woke.
        waits_now = after.state.isdecimal()
        waited_since = idle - waited_before if waits_now else 0.0
        native = _ended_in(asleep, whole) if lately == "native" else 0.0
        native = min(native, whole - waited_since)
        yield "block", waited_before, call
        yield "native", native, None
        yield "cpu", whole - waited_before - native - waited_since, None
        yield "block", waited_since, syscall_name(after.state)
    elif _computes(after, computing / whole if whole else 0.0):
        yield "block", waited_before, call
        yield "native", whole - waited_before, None
    else:
        # If the probe is late without waiting for the GIL, the kernel kept it from its core by
        # work for the function: computing in Python does not delay the probe.
        late = whole > 2 * (after.slept_ms + delay_ms)
        yield ("native" if late or lately == "native" else "cpu"), computing, None
        yield "block", idle, syscall_name(after.state)


def _ended_in(asleep: float, whole: float) -> float:
    """Return the estimated time of free GIL while the probe slept, if the GIL was free at first.

    A thread took the GIL in that time and held it until `whole`. A random observer of an activity
    sees half of it on average. So the activity is assumed to have begun as long before the probe
    woke as it lasted afterwards. But it began no earlier than the middle of the sleep on average.
    """
    held = whole - asleep
    return asleep - min(held, asleep / 2)


def _state(tick: Tick, last: Sequence[Stretch]) -> PeriodKind:
    """Return the function's activity at `tick`, right when the probe got the GIL."""
    if tick.state.isdecimal():
        return "block"
    if tick.state == RUNNING:
        return "native"
    return last[0].kind if last else "cpu"


def _computes(tick: Tick, load: float) -> bool:
    return tick.state == RUNNING or (not tick.state.isdecimal() and load >= 0.5)


def syscall_name(number: str, machine: str = platform.machine()) -> str | None:
    """Return the name of the call with the decimal `number`; None if unknown."""
    return _BY_MACHINE.get(machine, {}).get(int(number)) if number.isdecimal() else None

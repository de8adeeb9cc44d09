"""One run of a handler as the GIL probe saw it: stretches of one kind each.

The probe (`wrap.observe.gil_probe`) wants the GIL some four times a millisecond. That
it had to wait for it says that another thread held it. Where it had not, the CPU clocks of the
handler's threads, and whether they are running, tell computing from waiting.

The probe is late by as long as the kernel takes to wake it, which on a busy machine is longer than
what it looks at. What happened in the meantime is told by clocks that do not depend on it: the time
in which the handler's thread had no core is left out, and of the rest, what is not CPU time of the
function is waiting.
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
#: What is shorter the probe may miss: two of its ticks, in milliseconds.
SHORTEST_SEEN_MS = 0.5
#: The probe sleeps no longer than this.
LONGEST_SLEEP_MS = 0.2
#: How much longer than meant the probe is away, where nothing tells, in milliseconds.
USUAL_DELAY_MS = 0.05
#: What is no time at all, in milliseconds.
INSTANT_MS = 1e-6
#: A thread that hands the GIL on computes a little beside the one that takes it.
LEAST_PARALLELISM = 1.1
#: No run can keep more cores busy than this machine has.
CORES = os.cpu_count() or 1
#: Names of the system calls in which functions usually wait, by their numbers in the kernel.
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
    """What keeps so many cores busy as a whole `chiron.workflow.profile.Period.parallelism`."""
    return min(CORES, cores) if cores >= LEAST_PARALLELISM else 1.0


@dataclass(frozen=True)
class Tick:
    """The probe has the GIL."""

    #: Time since the handler's begin, without that in which its thread had no core.
    at_ms: float
    #: CPU time of the handler's threads until then.
    cpu_ms: float
    #: For how long the probe meant to sleep since the tick before.
    slept_ms: float
    #: Whether another thread had the GIL when the probe wanted it then.
    waited: bool
    #: ``running``, or the number of the system call in which the handler's thread is.
    state: str
    #: For how long it had no core so far.
    kept_ms: float
    #: CPU time of the processes that the function started until then.
    processes_ms: float


@dataclass(frozen=True)
class Stretch:
    """The function does one `kind` of thing from `start_ms` to `end_ms` after its begin.

    `cpu_ms` is what all its threads, and the processes that it started, compute in that time, also
    while the function itself waits for these.
    """

    kind: PeriodKind
    start_ms: float
    end_ms: float
    syscall: str | None = None
    cpu_ms: float = 0.0

    @property
    def parallelism(self) -> float:
        """How many cores it keeps busy, on average; below 1 only where it waits."""
        cores = self.cpu_ms / (self.end_ms - self.start_ms)
        if self.kind == "block":
            return cores
        return parallelism(cores) if self.end_ms - self.start_ms >= SHORTEST_SEEN_MS else 1.0


@dataclass(frozen=True)
class ProbeRun:
    """What the function did in one run: stretches that cover it in order without gap."""

    duration_ms: float
    stretches: tuple[Stretch, ...]

    def time_ms(self, kind: PeriodKind) -> float:
        """How long the function did `kind`, in all."""
        return sum(s.end_ms - s.start_ms for s in self.stretches if s.kind == kind)


def read_ticks(rows: Iterable[Sequence[Any]]) -> list[Tick]:
    """The ticks in a timeline's row, from the handler's begin to its end.

    Raises ValueError, TypeError, IndexError: they are no ticks.
    """
    rows = list(rows)
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
        for us, cpu, slept, waited, state, delay, kept, processes in rows
    ]
    if len(ticks) < 2 or (ticks[0].state, ticks[-1].state) != ("begin", "end"):
        raise ValueError("the ticks have no begin and end")
    return _in_order(ticks)


def _in_order(ticks: Sequence[Tick]) -> list[Tick]:
    """`ticks` from 0 on, none later than those after it.

    The kernel counts how long a thread had no core only when it has one again; so a tick within
    that time seems to be later than one that follows it.
    """
    first_ms = ticks[0].at_ms
    latest_ms = ticks[-1].at_ms
    found = []
    for tick in reversed(ticks):
        latest_ms = max(first_ms, min(latest_ms, tick.at_ms))
        found.append(replace(tick, at_ms=latest_ms - first_ms))
    return found[::-1]


def probe_run(ticks: Sequence[Tick]) -> ProbeRun:
    """What a run did, by its ticks; the first is its begin, the last its end."""
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
    """How much longer than it means to the probe is away while the GIL is free."""
    free = [
        after.at_ms - before.at_ms - after.slept_ms
        for before, after in pairwise(ticks[1:-1])
        if not after.waited
    ]
    return max(0.0, median_low(free)) if free else USUAL_DELAY_MS


def _between(
    before: Tick, after: Tick, delay_ms: float, last: Sequence[Stretch]
) -> Iterator[tuple[PeriodKind, float, str | None]]:
    """Kind, duration and system call of what happened between two ticks."""
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
            asleep = whole  # it would have come, had it had a core
        waited_before = min(waited_before, asleep)
        # What it waits for at the tick it may have begun long before the probe was awake.
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
        # A probe that comes late without having waited for the GIL was kept from its core, by
        # a kernel that works for the function: computing in Python does not keep it.
        late = whole > 2 * (after.slept_ms + delay_ms)
        yield ("native" if late or lately == "native" else "cpu"), computing, None
        yield "block", idle, syscall_name(after.state)


def _ended_in(asleep: float, whole: float) -> float:
    """How much of the time in which the probe was asleep the GIL was free, if it was at first.

    A thread took it in that time and held it until `whole`. What comes upon something that goes on
    sees half of it on average; so it began no longer before the probe woke than it went on then,
    nor earlier than in the middle of that time on average.
    """
    held = whole - asleep
    return asleep - min(held, asleep / 2)


def _state(tick: Tick, last: Sequence[Stretch]) -> PeriodKind:
    """What the function did at `tick`, right when the probe had got the GIL."""
    if tick.state.isdecimal():
        return "block"
    if tick.state == RUNNING:
        return "native"
    return last[0].kind if last else "cpu"


def _computes(tick: Tick, load: float) -> bool:
    return tick.state == RUNNING or (not tick.state.isdecimal() and load >= 0.5)


def syscall_name(number: str, machine: str = platform.machine()) -> str | None:
    """The name of the call with the decimal `number`, None where it is not known."""
    return _BY_MACHINE.get(machine, {}).get(int(number)) if number.isdecimal() else None

"""The highest rate of events at which windows are counted in time, and figures at half that rate.

References
----------
Pheromone (NSDI'23), figure 18: events of advertisements, counted by campaign every second.
"""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from chiron.deployment.launcher import Launcher
from chiron.evaluation.bench.usage import cpu_s
from chiron.evaluation.runtime.advertising import (
    NAME,
    Account,
    Events,
    Sent,
    Window,
    account,
    send,
    windows_in,
)
from chiron.evaluation.runtime.deployed import DeployedWorkflow, buckets
from chiron.evaluation.runtime.rounds import Figure, p99, resampled
from chiron.profiler.sandbox import find_sandbox
from chiron.workflow.errors import ChironError

#: The bound on the 99th percentile of the windows' delays, in milliseconds.
BOUND_MS = 50.0
#: Events a second. The search doubles the rate while it keeps the bound, then bisects.
_FIRST_PER_S, _MOST_PER_S, _HALVINGS = 1000.0, 64_000.0, 3
#: Duration of each try in seconds, and the share of the highest rate that is then held. At a higher
#: share events wait for seconds: a backlog, from when others had the cores, shrinks too slowly.
_TRY_S, _HELD_SHARE = 8.0, 0.5
#: Seconds between two kills of the wrap; a shorter run has one kill, in its middle.
_KILL_EVERY_S = 60.0
#: Windows with a result within this time after a kill are reported separately, in seconds.
_RECOVERY_S = 5.0
#: Longest wait for the last windows, in seconds.
_LAST_S = 15.0
_PROCESSES = (("filter-views", "find-campaign", "count-views"),)


class _Held(NamedTuple):
    """The outcome of one rate; ``cpu_s`` is the wrap's, ``kills`` are times in seconds."""

    rate: float
    sent: Sent
    windows: list[Window]
    account: Account
    cpu_s: float
    kills: list[float]

    @property
    def timed(self) -> list[Window]:
        """All windows but the last, whose end is unknown as no events follow it."""
        return sorted(self.windows, key=lambda window: window.newest)[:-1]

    @property
    def keeps(self) -> bool:
        """Whether sending kept up, and the 99th percentile of the delays is within the bound."""
        delays = [window.delay_ms for window in self.timed]
        return self.sent.kept_up and len(delays) > 1 and p99(delays) <= BOUND_MS


@dataclass
class _Wrap:
    """The wrap that receives the events, and the file to which it appends its windows."""

    launcher: Launcher
    deployed: DeployedWorkflow
    file: Path
    events: Events = field(default_factory=Events)
    next_event: int = 0

    @property
    def url(self) -> str:
        """The URL that accepts its events."""
        return f"{self.launcher.gateway.url}/function/{self.deployed.entry}"

    @property
    def pid(self) -> int:
        """The process id of its server."""
        return find_sandbox(self.deployed.entry, self.launcher.gateway.url).pid

    def hold(self, rate: float, seconds: float, kill_every_s: float | None = None) -> _Held:
        """Send `rate` events a second, and wait for their windows."""
        used, kills = _Used(self), list[float]()

        async def run() -> Sent:
            sending = asyncio.create_task(
                send(self.url, self.events, self.next_event, rate, seconds)
            )
            if kill_every_s is not None:
                killing = asyncio.create_task(self._kill(kill_every_s, used, kills))
                await asyncio.sleep(max(0.0, seconds - kill_every_s / 2))
                killing.cancel()
            return await sending

        sent = asyncio.run(run())
        self.next_event = sent.numbers.stop
        until = time.monotonic() + _LAST_S
        while True:
            windows = [w for w in windows_in(self.file) if w.events[0][0] >= sent.numbers.start]
            found = account(self.events, sent, windows)
            if not found.lost or time.monotonic() > until:
                return _Held(rate, sent, windows, found, used.until_now(), kills)
            time.sleep(0.2)

    async def _kill(self, every_s: float, used: _Used, kills: list[float]) -> None:
        """Kill the wrap's process every `every_s` seconds; the gateway restarts it each time."""
        while True:
            await asyncio.sleep(every_s)
            pid = await asyncio.to_thread(lambda: self.pid)
            used.ends(pid)
            kills.append(time.time())
            os.kill(pid, signal.SIGKILL)


class _Used:
    """The CPU time of a wrap's processes since this object was made, across kills."""

    def __init__(self, wrap: _Wrap) -> None:
        self._wrap = wrap
        self._before_s = -cpu_s([wrap.pid])

    def ends(self, pid: int) -> None:
        """Add the CPU time of process `pid`, which is about to be killed."""
        self._before_s += cpu_s([pid])

    def until_now(self) -> float:
        """Return the CPU time in seconds."""
        return self._before_s + cpu_s([self._wrap.pid])


def measure_events(
    launcher: Launcher, seconds: float, progress: Callable[[str], None], *, durable: bool = False
) -> tuple[Figure, ...]:
    """Return the figures of a rate that is held for `seconds`, in one process of one wrap.

    With `durable` the Redis of `launcher` stores its buckets. Its process is then killed once a
    minute, or once in the middle of a shorter run.

    Raises ``too-slow`` if even the lowest rate exceeds the bound.
    """
    with _deployed(launcher, durable) as wrap:
        rate = _HELD_SHARE * _highest(wrap, progress)
        kill_every_s = min(_KILL_EVERY_S, seconds / 2) if durable else None
        progress(f"{rate:.0f} events/s for {seconds:g} s")
        held = wrap.hold(rate, seconds, kill_every_s)
    return tuple(_figures(held))


@contextmanager
def _deployed(launcher: Launcher, durable: bool) -> Iterator[_Wrap]:
    with tempfile.TemporaryDirectory(prefix="chiron-") as scratch:
        file = Path(scratch) / "views"
        changes = {"durable": durable}
        variables = {"VIEWS_FILE": str(file)}
        with buckets(launcher, NAME, _PROCESSES, changes=changes, variables=variables) as deployed:
            yield _Wrap(launcher, deployed, file)


def _highest(wrap: _Wrap, progress: Callable[[str], None]) -> float:
    """Search for the highest rate that keeps the bound, in events a second."""

    def keeps(rate: float) -> bool:
        held = wrap.hold(rate, _TRY_S)
        delays = [window.delay_ms for window in held.timed]
        longest = f"{max(delays):.1f} ms" if delays else "none"
        progress(f"{rate:.0f} events/s: longest delay {longest}")
        return held.keeps

    low, high = 0.0, _FIRST_PER_S
    while keeps(high) and high < _MOST_PER_S:
        low, high = high, 2 * high
    if not low:
        message = f"windows are late by more than {BOUND_MS:g} ms at {high:.0f} events/s"
        raise ChironError("too-slow", message, status=500)
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if keeps(middle) else (low, middle)
    return low


def _figures(held: _Held) -> Iterator[Figure]:
    calm = [w for w in held.timed if not _follows(w, held.kills)]
    told, sent = held.account, held.sent
    yield Figure.of("events a second that are held", [held.rate], "1/s")
    yield from _delays("from a window's end to its result", [w.delay_ms for w in calm])
    yield from _delays("from its newest event to its result", [w.age_ms for w in calm])
    yield from _delays("until a request of events is acknowledged", _held_ms(held))
    yield Figure.of("CPU of the wrap for an event", [held.cpu_s / len(sent.numbers) * 1e6], "us")
    yield Figure.of("events sent", [len(sent.numbers)], "events")
    yield Figure.of("events acknowledged", [told.events], "events")
    yield Figure.of("views among these", [told.acknowledged], "events")
    yield Figure.of("views counted", [told.counted], "events")
    yield Figure.of("acknowledged views lost", [told.lost], "events")
    yield Figure.of("views counted twice", [told.twice], "events")
    yield Figure.of("windows", [len(held.windows)], "windows")
    late = sum(window.delay_ms > BOUND_MS for window in calm)
    yield Figure.of(f"windows that are counted later than {BOUND_MS:g} ms", [late], "windows")
    yield Figure.of("windows whose counts are wrong", [told.wrong_windows], "windows")
    if held.kills:
        yield Figure.of("kill -9 of the wrap's process", [len(held.kills)], "times")
        again = list(_again_ms(held))
        yield Figure.of("from a kill until events are acknowledged again", again, "ms")
        disturbed = [w.delay_ms for w in held.timed if _follows(w, held.kills)]
        if disturbed:
            yield Figure.of(f"delay of windows within {_RECOVERY_S:g} s of a kill", disturbed, "ms")


def _follows(window: Window, kills: Sequence[float]) -> bool:
    return any(0 <= window.at - kill < _RECOVERY_S for kill in kills)


def _held_ms(held: _Held) -> list[float]:
    return [
        seconds * 1000
        for due, seconds in held.sent.held
        if not any(kill - 1 <= due < kill + _RECOVERY_S for kill in held.kills)
    ]


def _again_ms(held: _Held) -> Iterator[float]:
    """Yield, for each kill, the time to the first acknowledgement of a request due after it."""
    for kill in held.kills:
        with suppress(ValueError):
            yield min(due + took - kill for due, took in held.sent.held if due > kill) * 1000


def _delays(name: str, delays_ms: Sequence[float]) -> Iterator[Figure]:
    yield Figure.of(name, delays_ms, "ms")
    yield resampled(f"p99, {name}", [delays_ms], lambda p: p[0])

"""Kills processes at random, looks for what leaks, and says how soon all was as before."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

import psutil
from load import Sample
from place import Place
from repeated import repeated

#: Between two kills, in seconds: at least and at most.
BETWEEN_S = (1.0, 5.0)
#: Answers in a row that have to be right, and in the median soon, to call it full speed.
IN_A_ROW = 5
#: How much longer than before the first kill they may take for that, in the median.
AS_BEFORE = 2.0


@dataclass(frozen=True)
class Kill:
    """A process that was killed: what it was, whose requests that hits, when (monotonic)."""

    kind: str
    target: str
    at: float


@dataclass(frozen=True)
class Look:
    """What a process has at a moment."""

    at: float
    descriptors: int
    threads: int
    rss: int
    processes: int


class Killer:
    """Picks a kind of process, and one of that kind, and kills it; again and again."""

    def __init__(self, place: Place, seed: int) -> None:
        self.kills: list[Kill] = []
        self._place = place
        self._random = random.Random(seed)
        self._kinds: dict[str, Callable[[], list[psutil.Process]]] = {
            "function": place.function_servers,
            "fork server": lambda: _children(place.function_servers()),
            "worker": lambda: _children(_children(place.function_servers())),
            "service": lambda: [place.services.process],
            "service's child": lambda: place.services.process.children(recursive=True),
        }

    def kill(self) -> None:
        """Kill one process, if there is one of the kind now."""
        kind = self._random.choice(list(self._kinds))
        with suppress(psutil.NoSuchProcess):
            candidates = self._kinds[kind]()
            if candidates:
                victim = self._random.choice(candidates)
                target = "services" if "service" in kind else _name(victim)
                victim.kill()
                self.kills.append(Kill(kind, target, time.monotonic()))

    def keep_killing(self, end: float, seen: set[psutil.Process]) -> None:
        """Until the time `end`; adds all processes that there were to `seen`."""
        while time.monotonic() < end:
            seen |= self._place.processes()
            self.kill()
            time.sleep(min(self._random.uniform(*BETWEEN_S), max(0.0, end - time.monotonic())))


def _children(processes: list[psutil.Process]) -> list[psutil.Process]:
    found = []
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            found += process.children()
    return found


def _name(process: psutil.Process) -> str:
    """The function that a process runs for; what is called through another one counts for it."""
    name = process.environ().get("OPENFAAS_NAME", "")
    return "soak-two" if name == "soak-far" else name


@dataclass
class Gauge:
    """Looks at the gateway, which is never killed, every now and then."""

    place: Place
    period_s: float = 1.0
    looks: list[Look] = field(default_factory=list)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Look for the length of the block."""
        with repeated(self.period_s, lambda: self.looks.append(self.look())):
            yield

    def look(self) -> Look:
        """What the gateway has now, and how many processes there are."""
        gateway = self.place.gateway
        with gateway.oneshot():
            return Look(
                time.monotonic(),
                gateway.num_fds(),
                gateway.num_threads(),
                gateway.memory_info().rss,
                len(self.place.processes()),
            )


@dataclass(frozen=True)
class Recovery:
    """How long it took after a kill, in seconds, until there was a right answer again.

    Attributes:
        answer_s: and others after it.
        full_speed_s: and it, with others after it, came as fast as before the kills.
    """

    answer_s: float
    full_speed_s: float


def recoveries(kills: list[Kill], samples: list[Sample], first: float) -> dict[Kill, Recovery]:
    """How the targets of `kills` recovered.

    Args:
        first: when the killing began; what was before it is the measure.

    Kills whose target was not asked often enough afterwards are left out, and those that another
    one of the same target followed before it was over.
    """
    found: dict[Kill, Recovery] = {}
    for target in {kill.target for kill in kills}:
        mine = sorted((s for s in samples if s.target == target), key=lambda s: s.start)
        before = [s.end - s.start for s in mine if s.right and s.end < first]
        times = sorted(kill.at for kill in kills if kill.target == target)
        if not before:
            continue
        bound = AS_BEFORE * statistics.median(before)
        for kill in (each for each in kills if each.target == target):
            following = next((at for at in times if at > kill.at), float("inf"))
            after = [s for s in mine if kill.at < s.end < following]
            answered, fast = _first_row(after, float("inf")), _first_row(after, bound)
            if answered and fast:
                found[kill] = Recovery(answered.end - kill.at, fast.end - kill.at)
    return found


def _first_row(samples: list[Sample], bound: float) -> Sample | None:
    """The first of the right answers in a row that took at most `bound` seconds in the median."""
    for index in range(len(samples) - IN_A_ROW + 1):
        row = samples[index : index + IN_A_ROW]
        median = statistics.median(sample.end - sample.start for sample in row)
        if all(sample.right for sample in row) and median <= bound:
            return row[0]
    return None

"""Times the simulation of processes with many threads, in Python and compiled."""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable

from predictor.engine import EngineName, engine
from predictor.threads import Interpreter, Life, Work
from workflow.documents import Document
from workflow.profile import PeriodKind

#: Threads of a process, and periods of a thread.
CASES = ((10, 20), (200, 20))
ENGINES: tuple[EngineName, ...] = ("python", "compiled")
_KINDS: tuple[PeriodKind, ...] = ("cpu", "cpu", "native", "block")
_INTERPRETER = Interpreter(switch_interval_ms=5.0, switch_cost_ms=0.01, thread_startup_ms=0.05)
_CORES = 4
#: A case is timed for about this long, in seconds, and at least this often.
_BUDGET_S, _FEWEST = 1.0, 20
#: What a search pays for the kernel, in a process of its own; the first time fills the cache.
_LOAD = """
import time
from predictor.engine import engine
from predictor.threads import Interpreter, Life
start = time.perf_counter()
compiled = engine("compiled", {"f": (("cpu", 1.0),)}, Interpreter(5.0, 0.0, 0.0))
compiled.ends_ms([Life(0.0, ("f",))], 1)
print((time.perf_counter() - start) * 1000)
"""
_LOADS = 3


class Speed(Document):
    """How long one simulation takes with one engine: median and quartiles, in microseconds."""

    engine: EngineName
    threads: int
    periods: int
    samples: int
    median_us: float
    low_us: float
    high_us: float


class Speeds(Document):
    """All cases, and what it takes to load the compiled kernel from its cache, in milliseconds."""

    format: int = 1
    speeds: tuple[Speed, ...]
    load_ms: float


def measure_speed(seed: int = 0) -> Speeds:
    """Time every case with every engine on processes at random."""
    load_ms = [_load_ms() for _ in range(1 + _LOADS)][1:]
    speeds = [_speed(name, *case, seed) for case in CASES for name in ENGINES]
    return Speeds(speeds=tuple(speeds), load_ms=round(statistics.median(load_ms), 1))


def _speed(name: EngineName, threads: int, periods: int, seed: int) -> Speed:
    works = random_works(threads, periods, seed)
    simulating = engine(name, works, _INTERPRETER)
    lives = [Life(0.0, tuple(works))]
    taken_us = _times_us(lambda: simulating.ends_ms(lives, _CORES))
    low, median, high = statistics.quantiles(taken_us, n=4)
    return Speed(
        engine=name,
        threads=threads,
        periods=periods,
        samples=len(taken_us),
        median_us=round(median, 2),
        low_us=round(low, 2),
        high_us=round(high, 2),
    )


def random_works(threads: int, periods: int, seed: int) -> dict[str, Work]:
    """Threads that compute and wait for up to 8 ms at a time, half of it with the GIL held."""
    at_random = random.Random(seed)  # noqa: S311

    def period() -> tuple[PeriodKind, float]:
        return at_random.choice(_KINDS), round(at_random.uniform(0.05, 8.0), 3)

    return {f"f{n}": tuple(period() for _ in range(periods)) for n in range(threads)}


def _times_us(simulate: Callable[[], object]) -> list[float]:
    simulate()
    taken: list[float] = []
    deadline = time.perf_counter() + _BUDGET_S
    while len(taken) < _FEWEST or time.perf_counter() < deadline:
        start = time.perf_counter()
        simulate()
        taken.append((time.perf_counter() - start) * 1e6)
    return taken


def _load_ms() -> float:
    loaded = subprocess.run(
        [sys.executable, "-c", _LOAD], capture_output=True, text=True, check=False, timeout=120
    )
    if loaded.returncode:
        raise ImportError(loaded.stderr.strip().rpartition("\n")[2])
    return float(loaded.stdout)

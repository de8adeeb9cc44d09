"""Simulates processes by the names of their functions: in Python, or compiled where that pays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, Protocol

from predictor.simulator import simulate
from predictor.threads import Interpreter, Life, Process, Work

EngineName = Literal["auto", "python", "compiled"]

#: The functions of each process of a wrap's stage.
Processes = tuple[tuple[str, ...], ...]

#: How many periods are simulated in Python, at about 10 us each, before the kernel is loaded,
#: which takes 0.6 s (the first time of all 5 s). A number and not a time, so that what is done is
#: the same for equal input.
ENOUGH_PERIODS = 100_000


class Engine(Protocol):
    """Simulates processes whose functions it knows."""

    def ends_ms(self, lives: Sequence[Life], cores: int) -> list[float]:
        """When each process ends."""

    def each_ms(self, processes: Sequence[Sequence[str]]) -> list[float]:
        """When each process ends that begins at 0 and has a core of its own."""


def processes_of(lives: Sequence[Life], works: Mapping[str, Work]) -> list[Process]:
    """What the processes do whose functions have names."""
    return [
        Process(
            life.start_ms,
            tuple(works[name] for name in life.functions),
            life.computing_ms,
            life.forking_ms,
        )
        for life in lives
    ]


def engine(
    name: EngineName,
    works: Mapping[str, Work],
    interpreter: Interpreter,
    wasted_cores: float = 0.0,
) -> Engine:
    """The engine of that name; `wasted_cores` is as `simulator.simulate` has it.

    ``auto`` begins in Python and goes on with the compiled kernel when there is much to simulate,
    so that who asks little does not pay for loading it.
    """
    if name == "python":
        return PythonEngine(works, interpreter, wasted_cores)
    if name == "compiled":
        return _compiled(works, interpreter, wasted_cores)
    return AutoEngine(works, interpreter, wasted_cores)


class PythonEngine:
    """The simulation that defines the truth."""

    def __init__(
        self, works: Mapping[str, Work], interpreter: Interpreter, wasted_cores: float = 0.0
    ) -> None:
        self._works = works
        self._interpreter = interpreter
        self._wasted_cores = wasted_cores

    def ends_ms(self, lives: Sequence[Life], cores: int) -> list[float]:
        """When each process ends."""
        processes = processes_of(lives, self._works)
        return simulate(processes, cores, self._interpreter, wasted_cores=self._wasted_cores)

    def each_ms(self, processes: Sequence[Sequence[str]]) -> list[float]:
        """When each process ends that begins at 0 and has a core of its own."""
        return [self.ends_ms([Life(0.0, names)], 1)[0] for names in processes]


class AutoEngine:
    """Begins in Python and goes on compiled."""

    def __init__(
        self, works: Mapping[str, Work], interpreter: Interpreter, wasted_cores: float = 0.0
    ) -> None:
        self._works, self._interpreter, self._wasted_cores = works, interpreter, wasted_cores
        self._engine: Engine = PythonEngine(works, interpreter, wasted_cores)
        self._periods_left: float = ENOUGH_PERIODS

    def ends_ms(self, lives: Sequence[Life], cores: int) -> list[float]:
        """When each process ends."""
        return self._counted(life.functions for life in lives).ends_ms(lives, cores)

    def each_ms(self, processes: Sequence[Sequence[str]]) -> list[float]:
        """When each process ends that begins at 0 and has a core of its own."""
        return self._counted(processes).each_ms(processes)

    def _counted(self, processes: Iterable[Sequence[str]]) -> Engine:
        """The engine for these processes, whose periods are counted."""
        self._periods_left -= sum(len(self._works[name]) for names in processes for name in names)
        if self._periods_left < 0:
            self._periods_left = float("inf")
            self._engine = _compiled(self._works, self._interpreter, self._wasted_cores)
        return self._engine


def _compiled(works: Mapping[str, Work], interpreter: Interpreter, wasted_cores: float) -> Engine:
    from predictor.compiled import CompiledEngine  # numba takes a quarter of a second to load

    return CompiledEngine(works, interpreter, wasted_cores)

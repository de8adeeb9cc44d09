"""The kernel as an engine: functions become numbers, and what they do becomes one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain

import numpy as np
from numpy.typing import NDArray

from predictor import kernel
from predictor.records import CLOCK, KINDS, PERIOD
from predictor.threads import Interpreter, Life, Work


class CompiledEngine:
    """The compiled simulation."""

    def __init__(
        self, works: Mapping[str, Work], interpreter: Interpreter, wasted_cores: float = 0.0
    ) -> None:
        periods = [(KINDS[kind], ms) for kind, ms in chain.from_iterable(works.values())]
        self._periods = np.array(periods, PERIOD)
        self._first = np.array([0, *accumulate(map(len, works.values()))], np.int64)
        self._number = {name: number for number, name in enumerate(works)}
        ready_ms = interpreter.thread_ready_ms
        self._clock = np.zeros(1, CLOCK)
        self._clock["switch_interval_ms"] = interpreter.switch_interval_ms
        self._clock["switch_cost_ms"] = interpreter.switch_cost_ms
        self._clock["thread_startup_ms"] = interpreter.thread_startup_ms
        self._clock["thread_ready_ms"] = -1.0 if ready_ms is None else ready_ms
        self._clock["short_release_ms"] = interpreter.short_release_ms
        self._clock["wasted_cores"] = wasted_cores

    def ends_ms(self, lives: Sequence[Life], cores: int) -> list[float]:
        """When each process ends."""
        starts_ms = np.array([life.start_ms for life in lives], np.float64)
        computing_ms = np.array([life.computing_ms for life in lives], np.float64)
        forking_ms = np.array([life.forking_ms for life in lives], np.float64)
        begins = starts_ms, computing_ms, forking_ms
        return self._simulated_ms([life.functions for life in lives], begins, [len(lives)], cores)

    def each_ms(self, processes: Sequence[Sequence[str]]) -> list[float]:
        """When each process ends that begins at 0 and has a core of its own."""
        at_once = np.zeros(len(processes))
        begins = at_once, at_once, at_once
        return self._simulated_ms(processes, begins, [1] * len(processes), 1)

    def _simulated_ms(
        self,
        processes: Sequence[Sequence[str]],
        begins: tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]],
        together: Sequence[int],
        cores: int,
    ) -> list[float]:
        ends_ms: list[float] = kernel.simulate(
            self._periods,
            self._first,
            np.array([self._number[name] for names in processes for name in names], np.int64),
            np.array(list(map(len, processes)), np.int64),
            *begins,
            np.array(together, np.int64),
            cores,
            self._clock,
        ).tolist()
        return ends_ms

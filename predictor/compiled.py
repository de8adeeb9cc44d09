"""The kernel as an engine: functions become numbers, and what they do becomes one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, chain

import numpy as np

from predictor import kernel
from predictor.records import CLOCK, KINDS, PERIOD
from predictor.threads import Interpreter, Life, Work


class CompiledEngine:
    """The compiled simulation."""

    def __init__(self, works: Mapping[str, Work], interpreter: Interpreter) -> None:
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

    def ends_ms(self, lives: Sequence[Life], cores: int) -> list[float]:
        """When each process ends."""
        numbers = [self._number[name] for life in lives for name in life.functions]
        ends_ms: list[float] = kernel.simulate(
            self._periods,
            self._first,
            np.array(numbers, np.int64),
            np.array([len(life.functions) for life in lives], np.int64),
            np.array([life.start_ms for life in lives], np.float64),
            np.array([life.computing_ms for life in lives], np.float64),
            cores,
            self._clock,
        ).tolist()
        return ends_ms

"""What the no-op functions tell of the Python that runs them."""

from __future__ import annotations

import json
from statistics import median
from typing import NamedTuple

from chiron.deployment.launcher import Deployment
from chiron.profiler.constants import Interpreter
from chiron.profiler.known_work import NOTHING
from chiron.profiler.noop_handler import QUESTION
from chiron.workflow.errors import ChironError


class Answer(NamedTuple):
    """What `chiron.profiler.noop_handler` answers: times in ms, Python's version, if it has a GIL.

    `short_release_ms` is None if it could not be measured.
    """

    switch_interval_ms: float
    switch_cost_ms: float
    short_release_ms: float | None
    python: tuple[int, ...]
    gil: bool


def interpreter_of(one: Deployment, stages: Deployment, requests: int) -> Interpreter:
    """Return the costs of the GIL by the no-op `one`, and the times of consecutive no-ops."""
    traced = [stages.invoke(NOTHING.request, trace=True).timeline for _ in range(requests)]
    noops_ms = [task.duration_ms for timeline in traced for task in timeline.tasks]
    interval_ms, cost_ms, short_ms, _, gil = asked(one)
    return Interpreter(interval_ms, cost_ms, median(noops_ms), gil, short_ms)


def asked(one: Deployment) -> Answer:
    """Ask the no-op `one` about its Python. Raises ChironError."""
    try:
        (answer,) = json.loads(one.invoke(QUESTION.encode()).output)
        interval_ms, cost_ms = float(answer["switch_interval_ms"]), float(answer["switch_cost_ms"])
        short_ms = answer["short_release_ms"]
        python, gil = tuple(map(int, answer["python"])), bool(answer["gil"])
        return Answer(interval_ms, cost_ms, short_ms and float(short_ms), python, gil)
    except (ValueError, KeyError, TypeError):
        message = "the no-op wrap answers something else than was asked: deploy chiron's template"
        raise ChironError("calibration-failed", message, status=502) from None

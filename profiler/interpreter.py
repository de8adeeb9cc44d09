"""What the no-op functions tell of the Python that runs them."""

from __future__ import annotations

import json
from statistics import median

from chiron.deployment.launcher import Deployment
from chiron.profiler.constants import Interpreter
from chiron.profiler.known_work import NOTHING
from chiron.profiler.noop_handler import QUESTION
from chiron.workflow.errors import ChironError


def interpreter_of(one: Deployment, stages: Deployment, requests: int) -> Interpreter:
    """Return the costs of the GIL by the no-op `one`, and the times of consecutive no-ops."""
    traced = [stages.invoke(NOTHING.request, trace=True).timeline for _ in range(requests)]
    noops_ms = [task.duration_ms for timeline in traced for task in timeline.tasks]
    interval_ms, cost_ms, _, gil = asked(one)
    return Interpreter(interval_ms, cost_ms, median(noops_ms), gil)


def asked(one: Deployment) -> tuple[float, float, tuple[int, ...], bool]:
    """Return the interval and cost of the GIL's switch, in ms; Python's version; if it has one."""
    try:
        (answer,) = json.loads(one.invoke(QUESTION.encode()).output)
        interval_ms, cost_ms = answer["switch_interval_ms"], answer["switch_cost_ms"]
        python = tuple(map(int, answer["python"]))
        return float(interval_ms), float(cost_ms), python, bool(answer["gil"])
    except (ValueError, KeyError, TypeError):
        message = "the no-op wrap answers something else than was asked: deploy chiron's template"
        raise ChironError("calibration-failed", message, status=502) from None

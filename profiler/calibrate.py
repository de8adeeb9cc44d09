"""Measures the constants of the platform with wraps whose functions do nothing."""

from __future__ import annotations

import json
import math
import os
import platform as machine
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from profiler import constants
from profiler.constants import Interpreter, Seen
from profiler.launcher import Answer, Deployment, Launcher
from profiler.noop_handler import PAUSE, QUESTION, WORK
from profiler.noop_shapes import Shape, crowd, shapes, write_folder
from profiler.reference_loop import Pace, machine_ms, paced
from profiler.self_check import Predict, prediction_error
from profiler.wasted_cores import CrowdRound, run_crowd, wasted_cores, wasted_cores_quartiles
from workflow.errors import ChironError
from workflow.platform import Platform

Progress = Callable[[str], None]
#: Plan -> what was seen of it.
Round = dict[str, Seen]

#: Rounds that count, each of which runs every plan once, and rounds before that are thrown away.
ROUNDS, _WARM_UP = 300, 10
#: No new round is begun when the rounds have taken this long, in seconds.
_BUDGET_S = 32.0
#: The crowd, which differs more from one time to the next, is timed so often in a round.
_CROWDS = 4
#: Every constant is found once more for each of so many parts of the rounds, for its spread.
_PARTS = 8
#: What the no-ops hand on.
_REQUEST = b"{}"


def calibrate(
    launcher: Launcher,
    *,
    predict: Predict,
    name: str | None = None,
    rounds: int = ROUNDS,
    progress: Progress | None = None,
) -> Platform:
    """Measure every constant of platform.json on the gateway of `launcher`.

    All plans are run in turn, so that the machine's drift is the same for all of them, and taken at
    one speed of the machine. The latencies are those that a client sees.

    Parameters
    ----------
    predict
        Predicts plans of known work, so that the platform says how wrong predictions are here.
    name
        What to call the platform; this machine's name where nothing is given.
    rounds
        How often every plan is timed at most.
    progress
        Told in a few words what is being done.

    Raises
    ------
    ChironError
        What deploying and invoking raise.

    References
    ----------
    Chiron (SC'23), equations (1)-(4) and Table 2.
    """
    say = progress or _nobody
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-calibrate-"))
        folder = write_folder(Path(scratch))

        def deploy(shape: Shape) -> Deployment:
            say(f"deploying no-ops: {shape.name}")
            return stack.enter_context(launcher.launch(shape.workflow, folder, shape.plan))

        deployed = {shape.name: deploy(shape) for shape in shapes()}
        cpus = len(os.sched_getaffinity(0))
        crowded = deploy(crowd()) if cpus > 1 else None
        say("timing no-ops")
        timed, crowds, reference_ms = _rounds(deployed, crowded, rounds)
        say("timing the GIL")
        interpreter = _interpreter(deployed["one"], rounds)

        def constants_of(some: Sequence[Round]) -> Platform:
            return constants.platform(
                _typical(some),
                interpreter,
                name=name or machine.node() or "platform",
                cpus=cpus,
                one_node=launcher.one_node,
            ).model_copy(update={"reference_ms": round(reference_ms, 4)})

        parts = [constants_of(timed[part::_PARTS]) for part in range(min(_PARTS, len(timed)))]
        found = constants_of(timed).model_copy(update={"spread": constants.spread(parts)})
        if crowds:
            spread = found.spread | {"wasted_cores": wasted_cores_quartiles(crowds)}
            wasted = {"wasted_cores": wasted_cores(crowds), "spread": spread}
            found = found.model_copy(update=wasted)
        say("checking predictions")
        error = prediction_error(deployed, found, predict)
    return found.model_copy(update={"prediction_error": error})


def _rounds(
    deployed: Mapping[str, Deployment], crowded: Deployment | None, rounds: int
) -> tuple[list[Round], list[CrowdRound], float]:
    """What was seen of every plan, and of the crowd, in each round; and how long the reference loop
    typically took, which is the speed that what was seen of the plans is for.
    """
    widths = {shape.name: len(shape.workflow.stages[0]) for shape in shapes()}
    taken: list[dict[str, tuple[Seen, Pace]]] = []
    crowds: list[CrowdRound] = []
    deadline = time.monotonic() + _BUDGET_S
    for number in range(_WARM_UP + rounds):
        if number > _WARM_UP and time.monotonic() > deadline:
            break
        seen = {
            name: paced(partial(_seen, name, one, widths[name])) for name, one in deployed.items()
        }
        if number < _WARM_UP:
            continue
        taken.append(seen)
        if crowded is not None:
            crowds += [run_crowd(deployed["one"], crowded) for _ in range(_CROWDS)]
    typical_ms = median(pace.loop_ms for one in taken for _, pace in one.values())
    timed = [
        {name: seen.slower(typical_ms / pace.loop_ms) for name, (seen, pace) in one.items()}
        for one in taken
    ]
    return timed, crowds, typical_ms


def overhead_ms(one: Deployment) -> float:
    """How long a request takes on top of what its function does, of the plan ``one``."""
    seen = _seen("", one)
    return seen.latency_ms - seen.last_ms


def _cold(one: Deployment, request: bytes, *, trace: bool = False) -> Answer:
    """The answer to a request that comes after something else has run on every core.

    Right after another one it takes a quarter less; but when plans are measured, and when a client
    has other things to do, nothing is left of it in the caches.
    """
    machine_ms()
    return one.invoke(request, trace=trace)


def _seen(name: str, one: Deployment, width: int = 1) -> Seen:
    """What one sees of the plan called `name`, with `width` tasks in each stage."""
    brief_ms = _cold(one, _REQUEST).latency_ms if name in constants.BRIEF else math.nan
    latency_ms = _cold(one, PAUSE.encode()).latency_ms
    traced = _cold(one, PAUSE.encode(), trace=True)
    working = name in constants.WORKING
    runs = [row for row in traced.timeline if row["kind"] == "run"]
    last: dict[int, dict[str, Any]] = {}
    for row in sorted(runs, key=lambda row: float(row["end_ms"])):
        last[row["task"] // width] = row
    return Seen(
        latency_ms=latency_ms,
        brief_ms=brief_ms,
        begins_ms=_begins_ms(traced),
        working_begins_ms=_begins_ms(_cold(one, WORK.encode(), trace=True)) if working else (),
        last_ms=sum(row["end_ms"] - row["start_ms"] for row in last.values()),
        tail_ms=traced.latency_ms - max(row["end_ms"] for row in runs),
    )


def _begins_ms(answer: Answer) -> tuple[float, ...]:
    """When each process of the entry wrap began with its first function."""
    runs = [row for row in answer.timeline if row["kind"] == "run"]
    entry = [row for row in runs if row["wrap"] == runs[0]["wrap"]]
    return tuple(
        min(row["start_ms"] for row in entry if row["process"] == process)
        for process in sorted({row["process"] for row in entry})
    )


def _typical(rounds: Sequence[Round]) -> Round:
    """What is typical of every plan.

    That is the median of the first plan's, and for the others, the median of how much longer they
    took than the first in the same round: what made a round slow has no part in that.
    """
    first = next(iter(rounds[0]))

    def typical(plan: str, time_ms: Callable[[Seen], float]) -> float:
        base = median(time_ms(one[first]) for one in rounds)
        return base + median(time_ms(one[plan]) - time_ms(one[first]) for one in rounds)

    return {
        plan: Seen(
            latency_ms=typical(plan, lambda seen: seen.latency_ms),
            brief_ms=typical(plan, lambda seen: seen.brief_ms),
            begins_ms=_medians([one[plan].begins_ms for one in rounds]),
            working_begins_ms=_medians([one[plan].working_begins_ms for one in rounds]),
            last_ms=typical(plan, lambda seen: seen.last_ms),
            tail_ms=typical(plan, lambda seen: seen.tail_ms),
        )
        for plan in rounds[0]
    }


def _medians(rows: Sequence[Sequence[float]]) -> tuple[float, ...]:
    """The median of every column."""
    return tuple(median(column) for column in zip(*rows, strict=True))


def _interpreter(one: Deployment, rounds: int) -> Interpreter:
    runs = [row for _ in range(rounds) for row in one.invoke(_REQUEST, trace=True).timeline]
    noops_ms = [row["end_ms"] - row["start_ms"] for row in runs if row["kind"] == "run"]
    try:
        (answer,) = json.loads(one.invoke(QUESTION.encode()).output)
        return Interpreter(
            float(answer["switch_interval_ms"]), float(answer["switch_cost_ms"]), median(noops_ms)
        )
    except (ValueError, KeyError, TypeError, ArithmeticError):
        message = "the no-op wrap answers something else than was asked: deploy chiron's template"
        raise ChironError("calibration-failed", message, status=502) from None


def _nobody(_: str) -> None:
    """Progress that nobody asked for."""

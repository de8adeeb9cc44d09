"""Measures the constants of the platform with wraps whose functions do nothing."""

from __future__ import annotations

import math
import os
import platform as machine
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from chiron.deployment.background_load import await_quiet, got_quiet, mean_share, others_share
from chiron.deployment.deploy import Progress
from chiron.deployment.invoke import Answer
from chiron.deployment.launcher import Deployment, Launcher
from chiron.profiler import constants
from chiron.profiler.constants import Interpreter, Seen
from chiron.profiler.contention_overhead import (
    CrowdRound,
    contention_overhead,
    contention_overhead_quartiles,
    run_crowd,
)
from chiron.profiler.cpu_speed import CpuSpeed, with_cpu_speed
from chiron.profiler.interpreter import asked, interpreter_of
from chiron.profiler.known_work import NOTHING, PAUSE, WORK, Work
from chiron.profiler.noop_shapes import Shape, chains, crowd, numerous, shapes, write_folder
from chiron.profiler.object_costs import (
    PerMegabyte,
    bodies,
    body_ms_per_mb,
    handing_over,
    joined_ms_per_mb,
    joining,
    shared_ms_per_mb,
)
from chiron.profiler.path_costs import path_costs, path_shapes
from chiron.profiler.rounds import Longer, Round, numerous_seen, request_variation, typical
from chiron.profiler.self_check import SelfCheck, alone_in, speed_drift, warnings
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.paths import Path as PathName
from chiron.workflow.paths import PathKind
from chiron.workflow.platform import PathCost, Platform

#: Rounds that count, each with one run of every plan, and discarded rounds before them.
ROUNDS, _WARM_UP = 300, 1
#: The fewest rounds: with fewer, the variation of requests is unknown.
_FEWEST = 5
#: Requests that time no-ops.
_TRACED = 50
#: Plans deployed at the same time.
_AT_ONCE = 4
#: Rounds that count of plans of many no-ops, for each of their deployments.
_NUMEROUS_ROUNDS = 14
#: The default paths of objects: directly if wraps can, and through the gateway.
PATHS: tuple[PathKind, ...] = ("auto", "gateway")
#: Requests that warm a plan up, and timed requests after them in each round.
_WARMING, _IN_ROW = 6, 6
#: Requests to the crowd in a round; its times vary more.
_CROWDS = 4
#: A version of Python that has every mechanism.
_ANY_PYTHON = (math.inf,)
#: Each constant is also computed for this many parts of the rounds, for its spread.
_PARTS = 8


@dataclass(frozen=True)
class Effort:
    """How thorough a calibration is.

    No round begins after ``budget_s`` seconds. Objects are timed ``object_rounds`` times, and many
    no-ops are deployed ``numerous_times``. An unreliable calibration is repeated once: when the
    machine is quiet, or after ``quiet_s`` seconds. With 0 it is repeated only if other programs
    disturbed it and the machine is quiet now.
    """

    budget_s: float = 47.0
    object_rounds: int = 40
    numerous_times: int = 3
    quiet_s: float = 20.0


#: The efforts of `chiron calibrate`, and of a deployment, which waits and is measured anyway.
THOROUGH, BRIEF = Effort(), Effort(budget_s=8.0, object_rounds=8, numerous_times=1, quiet_s=0.0)


def calibrate(
    launcher: Launcher,
    *,
    rounds: int = ROUNDS,
    effort: Effort = THOROUGH,
    progress: Progress | None = None,
) -> Platform:
    """Measure every constant of platform.json on the gateway of `launcher`.

    All plans run in turn, so the machine's drift is the same for all, and times are converted to
    one speed of the machine. Latencies are the client's. An unreliable calibration is repeated when
    the machine is quiet; if it stays unreliable, ``warnings`` has the reasons.

    Args:
        rounds: the most rounds, in each of which every plan is timed.
        effort: how thorough the calibration is.
        progress: called with a short description of each step.

    Raises the errors of deploying and invoking.

    Source: Chiron (SC'23), equations (1)-(4) and Table 2.
    """
    say = progress or (lambda _: None)
    paths: tuple[PathKind, ...] = (*PATHS, "store") if launcher.store.url else PATHS
    with ExitStack() as stack:
        scratch = stack.enter_context(tempfile.TemporaryDirectory(prefix="chiron-calibrate-"))
        place = NoOps(launcher, write_folder(Path(scratch)), say)
        # Deployed alone: some gateways have no capacity for more plans.
        objects, costs, longer, python = _large_or_many(place, paths, effort)
        calibration = _Calibration(place, longer, python, stack)

        def attempt() -> Platform:
            found = calibration.measured(rounds, effort.budget_s)
            quartiles = {name: each.quartiles_ms for name, each in objects.items()}
            medians = {name: each.median_ms for name, each in objects.items()}
            known: dict[str, Any] = {
                **medians,
                "spread": found.platform.spread | quartiles,
                "paths": costs,
            }
            say("checking predictions")
            return calibration.checked(found, found.platform.model_copy(update=known))

        return best_of(attempt, say, effort.quiet_s)


@dataclass(frozen=True)
class NoOps:
    """The place of no-op plans, and the listener to their progress."""

    launcher: Launcher
    folder: WorkflowFolder
    say: Progress

    def deploy(self, until: ExitStack, *plans: Shape) -> list[Deployment]:
        """Deploy plans of no-ops, several at a time, until the stack closes."""
        self.say(f"deploying no-ops: {', '.join(each.name for each in plans)}")
        launch = self.launcher.launch
        launched = [launch(each.workflow, self.folder, each.plan) for each in plans]
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            try:
                return list(pool.map(until.enter_context, launched))
            except BaseException:  # also Ctrl-C: deployments under way end first, and are removed
                pool.shutdown(cancel_futures=True)
                raise


def _large_or_many(
    place: NoOps, paths: tuple[PathKind, ...], effort: Effort
) -> tuple[dict[str, PerMegabyte], dict[PathName, PathCost], Longer, tuple[int, ...]]:
    """Return the costs of objects within a wrap (constant -> value) and by each path, the extra
    time of plans of many no-ops over a single no-op, and the version of Python in wraps.

    The plans are deployed several times: on cores of different speeds, a process on the slower core
    could be compared with a process on the faster.
    """
    many, across = (bodies(), *numerous()), path_shapes(paths)
    with ExitStack() as several:
        plans = *many, handing_over(), joining(), *across.values()
        deployed = place.deploy(several, *plans)
        rounds = _longer(many, deployed)
        python = asked(deployed[0]).python
        handed, joined, *reached = deployed[len(many) :]
        objects = {
            "shared_ms_per_mb": shared_ms_per_mb(handed, effort.object_rounds),
            "joined_ms_per_mb": joined_ms_per_mb(joined, reached[0], effort.object_rounds),
            "body_ms_per_mb": body_ms_per_mb(deployed[0], effort.object_rounds),
        }
        costs = path_costs(dict(zip(across, reached, strict=True)), effort.object_rounds)
    for _ in range(effort.numerous_times - 1):
        with ExitStack() as several:
            rounds += _longer(many, place.deploy(several, *many))
    longer = {name: [(each[name], speed) for each, speed in rounds] for name in rounds[0][0]}
    return objects, costs, longer, python


class _Timed(NamedTuple):
    """The times of an attempt, and the platform computed from them."""

    platform: Platform
    requests_ms: Mapping[Work, Sequence[float]]
    probes_ms: Sequence[float]
    looks: Sequence[float | None]


class _Calibration:
    """The deployed plans, which each attempt times.

    `longer` is the extra time of plans of many no-ops; `python` is the version of Python in wraps;
    `stack` keeps the plans deployed.
    """

    def __init__(
        self, place: NoOps, longer: Longer, python: tuple[int, ...], stack: ExitStack
    ) -> None:
        self._place, self._longer = place, longer
        self._cpus = len(os.sched_getaffinity(0))
        plans = [*shapes(python), chains(), *([crowd()] if self._cpus > 1 else [])]
        deployed = list(zip(plans, place.deploy(stack, *plans), strict=True))
        each = {plan.name: one for plan, one in deployed}
        self._crowded = each.get(crowd().name)
        self._deployed = {plan.name: each[plan.name] for plan in shapes(python)}
        self._check = SelfCheck(alone_in(each["one"]), deployed[1:])

    def measured(self, rounds: int, budget_s: float) -> _Timed:
        """Return the constants measured by no-ops, without the costs of objects."""
        looks: list[float | None] = []
        self._place.say("timing no-ops")
        gil = asked(self._deployed["one"]).gil
        crowd_round = None
        if self._crowded:
            crowd_round = partial(run_crowd, self._deployed["one"], self._crowded, gil)
        timed, crowds, requests_ms, probes_ms = _rounds(
            *(self._deployed, crowd_round, self._check, rounds),
            *(lambda: looks.append(others_share()), budget_s),
        )
        self._place.say("timing the GIL")
        traced = min(rounds, _TRACED)
        interpreter = interpreter_of(self._deployed["one"], self._deployed["stages"], traced)
        solved = partial(self._solved, interpreter, median(probes_ms))
        parts = [solved(timed[part::_PARTS]) for part in range(min(_PARTS, len(timed)))]
        spread = constants.spread(parts)
        overhead = dict[str, float]()
        if crowds:
            spread["contention_overhead"] = contention_overhead_quartiles(crowds)
            overhead["contention_overhead"] = contention_overhead(crowds)
        found = solved(timed).model_copy(update={**overhead, "spread": spread})
        return _Timed(found, requests_ms, probes_ms, looks)

    def checked(self, timed: _Timed, platform: Platform) -> Platform:
        """Return the platform with its prediction error and its warnings."""
        wrong = {
            "cpu_probe_ms": round(self._check.cpu_probe_ms, 4),
            "speed_drift": speed_drift(timed.probes_ms),
            "prediction_error": self._check.prediction_error(platform),
            "work_variation": self._check.work_variation(),
            "request_variation": request_variation(timed.requests_ms[NOTHING]),
            "idle_variation": request_variation(timed.requests_ms[PAUSE]),
            "others": (others := mean_share(timed.looks)),
        }
        found = platform.model_copy(update=wrong)
        return found.model_copy(update={"warnings": warnings(found, others)})

    def _solved(self, interpreter: Interpreter, probe_ms: float, some: Sequence[Round]) -> Platform:
        launcher, usual = self._place.launcher, typical(some)
        found = constants.platform(
            usual | numerous_seen(self._longer, usual["one"], probe_ms),
            interpreter,
            name=machine.node() or "platform",
            cpus=self._cpus,
            one_node=launcher.one_node,
        )
        return found.model_copy(update={"place": launcher.place})


def best_of(
    attempt: Callable[[], Platform], say: Progress, quiet_s: float = THOROUGH.quiet_s
) -> Platform:
    """Return the first reliable platform, else the better of two, and report its warnings."""
    best = attempt()
    if best.warnings and (quiet_s or got_quiet(best.others)):
        say("this is not to be relied on: measuring once more when the machine is quiet")
        await_quiet(quiet_s)
        best = min(best, attempt(), key=lambda each: (len(each.warnings), each.prediction_error))
    for line in best.warnings:
        say(f"warning: {line}")
    return best


def _rounds(
    deployed: Mapping[str, Deployment],
    crowd_round: Callable[[], CrowdRound] | None,
    check: SelfCheck,
    rounds: int,
    pause: Callable[[], None],
    budget_s: float,
) -> tuple[list[Round], list[CrowdRound], dict[Work, list[float]], list[float]]:
    """Return the measurements of every plan and of the crowd in each round; the times of
    consecutive requests to the first plan, by its work; and the probe's typical time in each round.

    The median probe time is the speed to which the plans' measurements are converted. `pause` is
    called after each round. No round begins after `budget_s` seconds, except the fewest rounds.
    """
    stages = {shape.name: shape.workflow.stages for shape in (*shapes(), *shapes(_ANY_PYTHON))}
    taken: list[dict[str, tuple[Seen, CpuSpeed]]] = []
    crowds: list[CrowdRound] = []
    requests_ms = dict[Work, list[float]]({NOTHING: [], PAUSE: []})
    first = next(iter(deployed.values()))
    deadline = time.monotonic() + budget_s
    for number in range(_WARM_UP + rounds):
        if number >= _WARM_UP + _FEWEST and time.monotonic() > deadline:
            break
        seen = {
            name: with_cpu_speed(partial(_seen, name, one, stages[name]))
            for name, one in deployed.items()
        }
        if number < _WARM_UP:
            continue
        taken.append(seen)
        for work, latencies_ms in requests_ms.items():
            latencies_ms += _in_row(first, work)
        if crowd_round is not None:
            crowds += [crowd_round() for _ in range(_CROWDS)]
        check.measure()
        pause()
    probes_ms = [median(speed.probe_ms for _, speed in one.values()) for one in taken]
    typical_ms = median(probes_ms)
    timed = [
        {name: seen.slower(typical_ms / speed.probe_ms) for name, (seen, speed) in one.items()}
        for one in taken
    ]
    return timed, crowds, requests_ms, probes_ms


def _longer(
    plans: Sequence[Shape], deployed: Sequence[Deployment]
) -> list[tuple[dict[str, float], CpuSpeed]]:
    """Return, for each round, the extra time of `plans` over the first; deploys them first."""
    longer_ms = partial(_longer_ms, list(zip(plans, deployed, strict=False)))
    return [with_cpu_speed(longer_ms) for _ in range(_WARM_UP + _NUMEROUS_ROUNDS)][_WARM_UP:]


def _longer_ms(plans: Sequence[tuple[Shape, Deployment]]) -> dict[str, float]:
    """Return the extra time of each plan over the first, or over its own single no-op."""
    first, *others = plans
    first_ms = _warm(first[1], first[0].request).latency_ms
    return {
        shape.name: _warm(one, shape.request).latency_ms
        - (_warm(one, shape.single).latency_ms if shape.single else first_ms)
        for shape, one in others
    }


def _warm(one: Deployment, request: bytes) -> Answer:
    """Return the answer to a request right after another."""
    one.invoke(request)
    return one.invoke(request)


def _in_row(one: Deployment, work: Work) -> list[float]:
    """Return the times of consecutive requests, like those that prove a plan.

    The first requests find cold caches and take a quarter longer.
    """
    for _ in range(_WARMING):
        one.invoke(NOTHING.request)
    return [one.invoke(work.request).latency_ms for _ in range(_IN_ROW)]


def _seen(name: str, one: Deployment, stages: Sequence[Sequence[str]]) -> Seen:
    """Return the measurement of the plan `name`, whose workflow has these `stages` of tasks."""
    brief_ms = median(_in_row(one, NOTHING)) if name in constants.BRIEF else math.nan
    latency_ms = _warm(one, PAUSE.request).latency_ms
    traced = one.invoke(PAUSE.request, trace=True)
    working = name in constants.WORKING
    ran = sorted(traced.timeline.tasks, key=lambda span: span.end_ms)
    stage_of = {task: number for number, stage in enumerate(stages) for task in stage}
    last = {stage_of[span.task or ""]: span for span in ran}
    return Seen(
        latency_ms=latency_ms,
        brief_ms=brief_ms,
        begins_ms=_begins_ms(traced),
        working_begins_ms=_begins_ms(one.invoke(WORK.request, trace=True)) if working else (),
        last_ms=sum(span.duration_ms for span in last.values()),
        tail_ms=traced.latency_ms - ran[-1].end_ms + traced.timeline.arrived_ms,
    )


def _begins_ms(answer: Answer) -> tuple[float, ...]:
    """Return the begin of the first function in each process of the entry wrap."""
    timeline = answer.timeline
    entry = [span for span in timeline.tasks if span.wrap == timeline.tasks[0].wrap]
    return tuple(
        min(span.start_ms for span in entry if span.process == process) - timeline.arrived_ms
        for process in sorted({span.process or 0 for span in entry})
    )

"""Constants from no-op plans: solved exactly, and measured for real."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from threading import Barrier, Event, Thread, current_thread
from types import SimpleNamespace
from typing import Any

import pytest

from chiron.deployment import background_load
from chiron.deployment.invoke import Answer
from chiron.deployment.launcher import Launcher
from chiron.openfaas.client import Gateway
from chiron.openfaas.stack import read_stack
from chiron.predictor.mechanisms import MECHANISMS
from chiron.predictor.plan_timeline import plan_timeline
from chiron.predictor.predict import Predictor, predict
from chiron.predictor.unrolling import Run
from chiron.profiler import calibrate as calibration
from chiron.profiler import noop_handler
from chiron.profiler.calibrate import BRIEF, NoOps, best_of, calibrate
from chiron.profiler.constants import SHORT_RELEASE_MS, Interpreter, Seen, platform, spread
from chiron.profiler.known_work import HASH, NOTHING, PAUSE, WORK, Work
from chiron.profiler.noop_handler import BLOCK
from chiron.profiler.noop_shapes import (
    FUNCTIONS,
    NUMEROUS,
    Shape,
    chains,
    crowd,
    numerous,
    shape,
    shapes,
    write_folder,
)
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Period, PeriodKind, Profile
from chiron.workflow.trace import Instance, unrolled
from tests.brief_chiron import LEAST, ROUNDS

NOOP_MS, PAUSE_MS = 0.004, 10.0
#: A version of Python that has every mechanism.
EVERY_PYTHON = (4, 0)


def seen_on(measured: Platform) -> dict[str, Seen]:
    """What one sees of each no-op plan on a platform where predictions are right."""
    plans = (*shapes(), *shapes(EVERY_PYTHON), *numerous())
    return {each.name: _seen(each, measured) for each in plans}


def _decided(each: Shape) -> Shape:
    """A machine's shape as what it does: an instance of its task for each item."""
    if each.workflow.machine is None:
        return each
    profile = _profile("cpu", NOOP_MS)
    (task,) = each.workflow.by_name
    static = unrolled(each.workflow, [Instance(task=task)] * NUMEROUS)
    return Shape(each.name, *reversed(Run(static, profile, decided=True).placed(each.plan)))


def _seen(each: Shape, measured: Platform) -> Seen:
    each = _decided(each)
    pausing = _profile("block", PAUSE_MS)
    predicted = predict(each.plan, each.workflow, pausing, measured).latency_ms
    timeline, _ = plan_timeline(each.plan, each.workflow, Predictor(pausing, measured))
    first = each.plan.wraps[0]
    blocked = [span for span in timeline.of_kind("block") if span.wrap == first.name]
    begins = [
        min(span.start_ms for span in blocked if span.process == process) - timeline.arrived_ms
        for process in range(len(first.processes))
    ]
    return Seen(
        latency_ms=predicted,
        brief_ms=predict(each.plan, each.workflow, _profile("cpu", NOOP_MS), measured).latency_ms,
        begins_ms=tuple(begins),
        working_begins_ms=tuple(begin + measured.pool_core_wait_ms for begin in begins),
        last_ms=PAUSE_MS * len(each.workflow.stages),
        tail_ms=predicted - max(begins) - PAUSE_MS,
    )


def _profile(kind: PeriodKind, milliseconds: float) -> Profile:
    periods = (Period(kind=kind, start_ms=0.0, duration_ms=milliseconds),)
    tried = dict.fromkeys(MECHANISMS, "")
    noop = FunctionProfile(latency_ms=milliseconds, periods=periods, tried=tried)
    return Profile(format=1, workflow="noop", functions=dict.fromkeys(FUNCTIONS, noop))


@pytest.mark.parametrize("gil", [True, False])
def test_constants_of_a_known_platform_are_found_again(platform_of: Platform, gil: bool) -> None:
    platform_of = platform_of.model_copy(update={"gil": gil})
    found = platform(
        seen_on(platform_of),
        Interpreter(5.0, platform_of.switch_cost_ms, NOOP_MS, gil),
        name=platform_of.name,
        cpus=platform_of.cpus,
        one_node=True,
    )
    left_out = {"spread", "warnings", "assumed", "paths"}
    left_out |= {"work_variation", "request_variation", "idle_variation"}
    known, measured = (each.model_dump(exclude=left_out) for each in (platform_of, found))
    for constants in (known, measured):
        constants |= {f"idle {name}": more_ms for name, more_ms in constants.pop("idle").items()}
    assert measured == pytest.approx(known, abs=0.02)


@pytest.mark.parametrize("python", [(3, 11), EVERY_PYTHON])
def test_no_more_is_deployed_than_the_community_edition_allows(
    python: tuple[int, int], tmp_path: Path
) -> None:
    folder, deployed = write_folder(tmp_path), list[str]()

    def build(stack_file: Path) -> None:
        deployed.extend(read_stack(stack_file, {}).functions)
        raise ChironError("built", "no more of it is wanted")

    launcher = Launcher(Gateway("http://127.0.0.1:1"), build, gateway_url="http://gateway:8080")
    for each in (*shapes(python), crowd(), chains()):
        with suppress(ChironError), launcher.launch(each.workflow, folder, each.plan):
            pass
    assert len(deployed) == len({*deployed}) <= 15
    assert all("-wrap" in name for name in deployed)


def test_large_objects_and_many_no_ops_are_deployed_at_once_and_are_no_more_either() -> None:
    wraps = list[str]()

    def launch(_workflow: Workflow, _folder: object, plan: Plan) -> ExitStack:
        wraps.extend(wrap.name.split("-", maxsplit=3)[3] for wrap in plan.wraps)
        return ExitStack()

    place: Any = SimpleNamespace(launch=launch, store=SimpleNamespace(url="redis://store"))
    with suppress(AttributeError):  # nothing is deployed, so nothing can be timed
        calibrate(place)
    assert {"objects-wrap1", "path-store-wrap2", "wide-wrap1"} < {*wraps}
    assert len(wraps) == len({*wraps}) <= 15


def test_a_platform_names_the_constants_that_were_not_measured(platform_of: Platform) -> None:
    seen = seen_on(platform_of)
    interpreter = Interpreter(5.0, platform_of.switch_cost_ms, NOOP_MS)
    one, several = (platform(seen, interpreter, name="p", cpus=cpus) for cpus in (1, 2))
    assert {"short_release_ms", "process_compute_ms"} <= set(several.assumed)
    measured = platform(seen, replace(interpreter, short_release_ms=0.0), name="p", cpus=2)
    assert measured.short_release_ms == 0
    assert set(several.assumed) - set(measured.assumed) == {"short_release_ms"}
    assert set(one.assumed) - set(several.assumed) == {"contention_overhead"}
    assert set(one.assumed) <= Platform.model_fields.keys()


def test_the_spread_has_the_quartiles_of_what_differs(platform_of: Platform) -> None:
    parts = [platform_of.model_copy(update={"rpc_ms": float(ms)}) for ms in (5, 1, 2, 3, 4)]
    assert spread(parts) == {"rpc_ms": (2.0, 4.0)}
    assert spread([platform_of]) == {}


@pytest.fixture
def platform_of() -> Platform:
    return Platform(
        format=1,
        name="known",
        cpus=64,
        request_ms=2.0,
        stage_ms=0.4,
        instance_ms=0.2,
        rpc_ms=1.5,
        invoke_ms=0.5,
        send_ms=0.2,
        ipc_ms=0.1,
        one_node=True,
        process_gather_ms=1.2,
        process_startup_ms=3.0,
        process_block_ms=1.0,
        process_compute_ms=3.0,
        main_wait_ms=0.7,
        pool_dispatch_ms=0.4,
        pool_core_wait_ms=2.1,
        interpreters_dispatch_ms=0.3,
        interpreters_core_wait_ms=2.1,
        idle={"request_ms": 0.8, "stage_ms": 0.3, "rpc_ms": 0.6},
        thread_startup_ms=0.05,
        switch_interval_ms=5.0,
        switch_cost_ms=0.01,
        short_release_ms=SHORT_RELEASE_MS,
    )


def test_noise_makes_no_constant_negative(platform_of: Platform) -> None:
    seen = seen_on(platform_of)
    noisy = seen | {"one": replace(seen["one"], latency_ms=99.0, brief_ms=99.0, begins_ms=(99.0,))}
    found = platform(noisy, Interpreter(5.0, 0.006, NOOP_MS), name="noisy", cpus=2)
    assert (found.rpc_ms, found.process_startup_ms, found.main_wait_ms) == (0, 0, 0)


def test_the_no_op_answers_its_request_or_the_interpreters_constants() -> None:
    for work, least_ms in ((NOTHING, 0.0), (PAUSE, PAUSE_MS), (WORK, PAUSE_MS), (HASH, 1.0)):
        request = work.request.decode()
        start = time.monotonic()
        assert noop_handler.handle(request) == request
        assert time.monotonic() - start >= least_ms / 1000
    answer = json.loads(noop_handler.handle(noop_handler.QUESTION))
    assert answer["switch_interval_ms"] == pytest.approx(sys.getswitchinterval() * 1000)
    assert answer["switch_cost_ms"] > 0
    assert answer["short_release_ms"] in (0, 0.05, 0.1, 0.2)


def test_a_thread_that_may_not_be_bound_does_not_measure_short_releases(monkeypatch) -> None:
    def refused(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr("os.sched_setaffinity", refused)
    assert noop_handler.short_release_ms() is None


def test_measuring_short_releases_leaves_the_thread_its_cores() -> None:
    before = os.sched_getaffinity(0)
    noop_handler.short_release_ms()
    assert os.sched_getaffinity(0) == before


def test_requests_are_timed_when_those_before_have_warmed_the_caches() -> None:
    class Cold:
        def __init__(self) -> None:
            self.taken_ms = iter([9.0] * 4 + [2.0] * 20)

        def invoke(self, _: bytes) -> Answer:
            return Answer("", next(self.taken_ms))

    one: Any = Cold()
    assert set(calibration._in_row(one, NOTHING)) == {2.0}


@pytest.fixture
def quiet_now(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others leave the machine alone at once."""
    monkeypatch.setattr(calibration, "await_quiet", lambda _: None)


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ([()], 0),
        ([("busy",), ()], 1),
        ([("busy",), ("busy",)], 0),
        ([("busy", "scattered"), ("busy",)], 1),
        ([("busy",), ("busy", "scattered")], 0),
    ],
)
@pytest.mark.usefixtures("quiet_now")
def test_a_bad_calibration_is_repeated_once_and_the_better_one_is_kept(
    platform_of: Platform, found: list[tuple[str, ...]], kept: int
) -> None:
    attempts = [
        platform_of.model_copy(update={"warnings": lines, "cpus": number})
        for number, lines in enumerate(found, start=1)
    ]
    left, said = list(attempts), list[str]()
    assert best_of(lambda: left.pop(0), said.append) == attempts[kept]
    assert left == []
    assert [line for line in said if "warning" in line] == [f"warning: {w}" for w in found[kept]]


@pytest.mark.parametrize(
    ("others", "quiet", "kept"),
    [(0.4, True, 0.1), (0.4, False, 0.5), (0.01, True, 0.5), (None, True, 0.5)],
)
def test_what_waits_for_nothing_is_repeated_where_others_have_left_a_quiet_machine(
    platform_of: Platform,
    monkeypatch: pytest.MonkeyPatch,
    others: float | None,
    quiet: bool,
    kept: float,
) -> None:
    monkeypatch.setattr(background_load, "is_quiet", lambda: quiet)
    attempts = [
        platform_of.model_copy(
            update={"warnings": ("off",), "prediction_error": error, "others": others}
        )
        for error in (0.5, 0.1)
    ]
    said = list[str]()
    found = best_of(lambda: attempts.pop(0), said.append, BRIEF.quiet_s)
    assert found.prediction_error == kept


def _fails() -> None:
    raise ChironError("built", "no room")


def _interrupts() -> None:
    os.kill(os.getpid(), signal.SIGINT)


@pytest.mark.parametrize(
    ("ends", "error"), [(_fails, ChironError), (_interrupts, KeyboardInterrupt)]
)
def test_of_plans_that_are_deployed_at_a_time_none_stays_where_that_ends(
    tmp_path: Path, ends: Callable[[], None], error: type[BaseException]
) -> None:
    """Also what is being deployed when another one fails, or somebody ends the command."""
    running, threads, begun, ended = set[str](), list[Thread](), Barrier(2), Event()

    class Place:
        @contextmanager
        def launch(self, workflow: Workflow, *_: object) -> Iterator[str]:
            threads.append(current_thread())
            begun.wait(60)
            if workflow.name.endswith("wide"):
                ended.set()
                ends()
            assert ended.wait(60)
            running.add(workflow.name)
            try:
                yield workflow.name
            finally:
                running.remove(workflow.name)

    launcher: Any = Place()
    place = NoOps(launcher, write_folder(tmp_path), lambda _: None)
    with pytest.raises(error) as caught, ExitStack() as stack:
        place.deploy(stack, *numerous()[:2])
    for thread in threads:
        thread.join(60)
    assert running == set() and caught.tb  # whose frames keep what is open


def test_what_a_map_takes_itself_is_not_of_its_items() -> None:
    """Requests in a row take a millisecond for each byte."""

    class Answers:
        def invoke(self, request: bytes) -> Any:
            return SimpleNamespace(latency_ms=float(len(request)))

    one: Any = Answers()
    plans = shape("single", [[1]]), *numerous()
    longer_ms = calibration._longer_ms([(each, one) for each in plans])
    (mapped,) = (each for each in plans if each.single)
    assert longer_ms.pop(mapped.name) == len(mapped.request) - len(mapped.single or b"")
    assert set(longer_ms.values()) == {0.0}


@pytest.mark.slow
def test_each_function_of_a_wrap_does_its_own_list(launcher: Launcher, tmp_path: Path) -> None:
    folder, pair = write_folder(tmp_path / "no-ops"), shape("pair", [[1] * 2])
    request = Work((), ((BLOCK, PAUSE_MS),)).request
    with launcher.launch(pair.workflow, folder, pair.plan) as deployed:
        spans = deployed.invoke(request, trace=True).timeline.tasks
    assert {each.task for each in spans if each.duration_ms >= PAUSE_MS} >= {"t1"}
    assert {each.task for each in spans} == {"t0", "t1"}


@pytest.mark.slow
def test_a_real_gateway_is_calibrated_and_left_as_it_was(
    launcher: Launcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calibration, "others_share", lambda: 0.62)
    for name, few in {"_WARM_UP": 1, "_NUMEROUS_ROUNDS": ROUNDS}.items():
        monkeypatch.setattr(calibration, name, few)
    said: list[str] = []
    found = calibrate(launcher, rounds=ROUNDS, effort=LEAST, progress=said.append)
    assert (found.name, found.cpus) == (os.uname().nodename, len(os.sched_getaffinity(0)))
    assert found.one_node
    assert found.switch_interval_ms == pytest.approx(5.0)
    assert found.request_ms > 0
    low, high = found.spread["request_ms"]
    assert 0 < low <= high
    for name in ("shared_ms_per_mb", "joined_ms_per_mb", "body_ms_per_mb"):
        low, high = found.spread[name]
        assert 0 <= low <= getattr(found, name) <= high  # beside other work a slope may be noise
    assert found.paths.keys() == {"direct", "gateway"}
    assert all(path.ms_per_mb >= 0 for path in found.paths.values())
    assert ("contention_overhead" in found.spread) == (found.cpus > 1)
    assert 0 <= found.prediction_error <= 1
    assert 0 <= found.speed_drift <= 1
    assert "62% of the cores" in found.warnings[0]
    assert [f"warning: {line}" for line in found.warnings] == said[-len(found.warnings) :]
    assert launcher.gateway.functions() == []


def test_processes_that_calibrate_on_one_gateway_deploy_under_names_of_their_own(monkeypatch):
    def names():
        each = [*shapes(), *numerous(), chains(), crowd()]
        return {wrap.name for plan in each for wrap in plan.plan.wraps}

    here = names()
    assert names() == here
    monkeypatch.setattr(os, "getpid", lambda: -1)
    assert not names() & here

"""How fast the machine is, and measurements taken at one speed of it."""

from __future__ import annotations

import dis
import os
from collections.abc import Callable
from pathlib import Path
from types import CodeType

import pytest

from chiron.openfaas.handlers import Handler
from chiron.predictor.speed import run_at
from chiron.profiler.cpu_speed import (
    CpuSpeed,
    cpu_probe_ms,
    mean_probe_ms,
    speed_of,
    steady,
    with_cpu_speed,
)
from chiron.profiler.function_profile import function_profile
from chiron.profiler.probe_run import CORES, ProbeRun, Stretch
from chiron.profiler.sampling import Samples, Untraced

WRAP_LOOP = Path(__file__).resolve().parents[2] / "templates/python3-wrap/wrap/observe/cpu_speed.py"


def loop_of(code: CodeType) -> list[tuple[str, object]]:
    """The instructions of the loop in `code`, from its first to its last jump."""
    steps = [(step.opname, step.argrepr) for step in dis.get_instructions(code)]
    names = [name for name, _ in steps]
    last = max(place for place, name in enumerate(names) if name.startswith("JUMP_BACKWARD"))
    return [step for step in steps[names.index("GET_ITER") : last] if "JUMP" not in step[0]]


def test_the_wraps_loop_is_the_profilers() -> None:
    compiled: dict[str, Callable[[], float]] = {}
    exec(WRAP_LOOP.read_text(), compiled)  # noqa: S102
    steps = [
        [step for step in loop_of(each.__code__) if step[0] != "FOR_ITER"]
        for each in (compiled["cpu_probe_s"], cpu_probe_ms)
    ]
    assert len(steps[0]) > 3
    assert steps[0] == steps[1]


def test_looking_at_every_core_leaves_the_thread_where_it_may_be() -> None:
    allowed = os.sched_getaffinity(0)
    assert mean_probe_ms() > 0
    value, beside = with_cpu_speed(lambda: "done")
    assert (value, beside.probe_ms > 0, beside.uneven >= 0) == ("done", True, True)
    assert os.sched_getaffinity(0) == allowed


def test_where_cores_cannot_be_chosen_the_one_it_is_on_will_do(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "sched_setaffinity", refuse)
    _, beside = with_cpu_speed(lambda: None)
    assert beside.probe_ms > 0


def test_those_count_beside_which_the_cores_were_most_alike() -> None:
    measured = [("a", 0.5), ("b", 0.1), ("c", 0.4), ("d", 0.0), ("e", 0.3), ("f", 0.2)]
    assert steady(measured, lambda each: each[1]) == (("b", 0.1), ("d", 0.0))
    assert steady(measured[:1], lambda each: each[1]) == (("a", 0.5),)


@pytest.mark.parametrize(
    ("taken_ms", "waiting_ms", "then_ms", "now_ms", "expected"),
    [
        (30.0, 10.0, 1.0, 1.5, 40.0),
        (30.0, 10.0, 2.0, 1.0, 20.0),
        (8.0, 10.0, 1.0, 2.0, 8.0),  # a run that waited for less than usual has computed nothing
        (30.0, 10.0, None, 2.0, 30.0),
    ],
)
def test_a_run_at_another_speed_waits_as_long_and_computes_longer(
    taken_ms: float, waiting_ms: float, then_ms: float | None, now_ms: float, expected: float
) -> None:
    assert run_at(taken_ms, waiting_ms, then_ms, now_ms) == pytest.approx(expected)


def samples(untraced: list[Untraced]) -> Samples:
    """Of a function that computes for a third of its time and waits for the rest."""
    probed = ProbeRun(35.0, (Stretch("cpu", 0.0, 15.0), Stretch("block", 15.0, 35.0, "poll")))
    return Samples(tuple(untraced), (), (probed,), 0.0, 0.0, 0, 0)


def test_the_latency_is_that_at_one_speed(tmp_path: Path) -> None:
    """At one speed the 20 ms of waiting and 10 of computing of each run are as long in all."""
    runs = [Untraced(20.0 + 10.0 * speed, CpuSpeed(speed, 0.0)) for speed in (1.0, 1.5, 2.0) * 3]
    found = function_profile(samples(runs), "python3.11", Handler("f", tmp_path, "flask"))
    assert found.cpu_probe_ms == 1.5
    assert found.latency_ms == pytest.approx(35.0, abs=0.8)
    assert found.spread_ms == (30.0, 40.0)
    assert found.variation == pytest.approx([1.0] * len(found.variation), abs=0.001)


def test_what_varies_at_one_speed_is_the_function(tmp_path: Path) -> None:
    """One run in five takes twice as long, whatever the speed."""
    runs = [
        Untraced((2 if number % 5 == 4 else 1) * (20.0 + 10.0 * speed), CpuSpeed(speed, 0.0))
        for number, speed in enumerate((1.0, 1.5, 2.0) * 10)
    ]
    found = function_profile(samples(runs), "python3.11", Handler("f", tmp_path, "flask"))
    assert list(found.variation) == sorted(found.variation)
    assert found.variation[0] == pytest.approx(1.0, abs=0.05)
    assert found.variation[-1] == pytest.approx(2.0, rel=0.15)
    assert 0 < sum(ratio > 1.5 for ratio in found.variation) < len(found.variation) // 3


def test_runs_within_which_the_core_changed_its_speed_do_not_count(tmp_path: Path) -> None:
    changed = [Untraced(60.0, CpuSpeed(1.0, 0.8))] * 4
    found = function_profile(
        samples([*changed, *[Untraced(30.0, CpuSpeed(1.0, 0.01))] * 2]),
        "",
        Handler("f", tmp_path, "flask"),
    )
    assert (found.latency_ms, found.samples) == (30.0, 6)


@pytest.mark.parametrize(
    ("cores", "parallelism"),
    [(1.5, min(CORES, 2.0)), (0.99, 1.0), (0.5, 1.0)],
    ids=["the probe took some cores", "there is none", "it waited more"],
)
def test_what_computes_at_once_comes_to_the_cpu_time_of_untraced_runs(
    tmp_path: Path, cores: float, parallelism: float
) -> None:
    """The probe saw 10 of 20 ms compute on 1.5 cores."""
    seen = Stretch("native", 0.0, 10.0, None, 15.0), Stretch("cpu", 10.0, 20.0, None, 10.0)
    run = Untraced(20.0, CpuSpeed(1.0, 0.0), cores)
    taken = Samples((run,) * 6, (), (ProbeRun(20.0, seen),), 0.0, 0.0, 0, 0)
    found = function_profile(taken, "", Handler("f", tmp_path, "flask"))
    assert [period.parallelism for period in found.periods] == [parallelism, 1.0]


def test_what_the_probe_of_the_gil_does_not_see_is_told_by_its_cpu_time(tmp_path: Path) -> None:
    """Without a trace a Node.js handler that keeps half a core busy computes first."""
    taken = Samples((Untraced(20.0, CpuSpeed(1.0, 0.0), 0.5),) * 6, (), (), 0.0, 0.0, 0, 0)
    node = Handler("f", tmp_path, "node", runtime="node", cooperative=True)
    found = function_profile(taken, "python3.11", node)
    kinds = [(period.kind, period.duration_ms) for period in found.periods]
    assert kinds == [("cpu", 10.0), ("block", 10.0)]
    assert (found.runtime, found.cooperative, found.sources) == ("node", True, ())


def test_what_runs_without_a_lock_computes_beside_others(tmp_path: Path) -> None:
    taken = Samples((Untraced(20.0, CpuSpeed(1.0, 0.0), 0.5),) * 6, (), (), 0.0, 0.0, 0, 0)
    java = Handler("f", tmp_path, "java", runtime="java", parallel=True)
    found = function_profile(taken, "python3.11", java)
    assert [period.kind for period in found.periods] == ["native", "block"]


def test_how_even_the_speed_was_is_in_what_the_loop_took() -> None:
    assert speed_of([1.0, 1.5, 2.0]) == (1.5, 1.0)

"""What a machine did for a payload, as a workflow that decides nothing."""

from __future__ import annotations

import pytest

from chiron.predictor.predict import predict
from chiron.predictor.unrolling import run_of
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.profile import FunctionProfile, PayloadProfile, Period, Profile
from chiron.workflow.trace import Instance

#: What runs one task by a function that waits 3 ms, as often as its trace says.
MACHINE = Workflow("demo", (Task("T", "f", None),), None, machine={"StartAt": "T"})


def profiled(*trace: Instance) -> Profile:
    period = Period(kind="block", start_ms=0.0, duration_ms=3.0)
    functions = {"f": FunctionProfile(latency_ms=3.0, periods=(period,))}
    answer = ExpectedAnswer.learned(b"{}", ["{}"], ())
    asked = PayloadProfile(name="payload.json", weight=1.0, answer=answer, trace=trace)
    return Profile(format=1, workflow="demo", functions=functions, payloads=(asked,))


@pytest.mark.parametrize(("after", "waited"), [((), 1), ((0,), 2)])
def test_a_machine_computes_for_each_run_of_a_task(platform, after, waited):
    """Beside each other they compute in turn, while the first one waits; then the last one does."""
    profile = profiled(Instance(task="T"), Instance(task="T", after=after))
    wrap = Wrap(name="w", cpus=1, memory_mib=64, mechanism="fork", processes=(("T",),))
    plan = Plan(format=2, workflow="demo", planner="pgp", wraps=(wrap,), cpus=1)
    before, after_it = (
        predict(plan, MACHINE, profile, platform(instance_ms=ms)).latency_ms for ms in (0.0, 0.25)
    )
    assert (before, after_it) == (3.0 * waited, 3.0 * waited + 0.5)


def test_a_task_that_ran_into_its_limit_takes_that_long():
    profile = profiled(
        Instance(task="T", failed=True, wait_ms=1000.0), Instance(task="T", after=(0,))
    )
    run = run_of(MACHINE, profile)
    assert run.own == {"T#1": "wait 1000 ms"}
    took_ms = {task.name: run.own.get(task.name, task.function) for task in run.workflow.tasks}
    assert [run.profile.functions[each].latency_ms for each in took_ms.values()] == [1000.0, 3.0]


def test_without_a_gil_two_runs_of_a_task_compute_at_once(platform):
    """Each decides for 0.25 ms on its core, and then waits."""
    profile = profiled(Instance(task="T"), Instance(task="T"))
    wrap = Wrap(name="w", cpus=2, memory_mib=64, mechanism="fork", processes=(("T",),))
    plan = Plan(format=2, workflow="demo", planner="pgp", wraps=(wrap,), cpus=2)
    held, free = (
        predict(plan, MACHINE, profile, platform(instance_ms=0.25, gil=gil)).latency_ms
        for gil in (True, False)
    )
    assert (held, free) == (3.5, 3.25)

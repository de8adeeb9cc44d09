"""What a machine did for a payload, as a workflow that decides nothing."""

from __future__ import annotations

from chiron.predictor.unrolling import run_of
from chiron.workflow.answer import ExpectedAnswer
from chiron.workflow.model import Task, Workflow
from chiron.workflow.profile import FunctionProfile, PayloadProfile, Period, Profile
from chiron.workflow.trace import Instance


def test_a_task_that_ran_into_its_limit_takes_that_long():
    period = Period(kind="block", start_ms=0.0, duration_ms=3.0)
    functions = {"f": FunctionProfile(latency_ms=3.0, periods=(period,))}
    trace = (
        Instance(task="T", failed=True, wait_ms=1000.0),
        Instance(task="T", after=(0,)),
    )
    answer = ExpectedAnswer.learned(b"{}", ["{}"], ())
    asked = PayloadProfile(name="payload.json", weight=1.0, answer=answer, trace=trace)
    profile = Profile(format=1, workflow="demo", functions=functions, payloads=(asked,))
    workflow = Workflow("demo", (Task("T", "f", None),), None, machine={"StartAt": "T"})
    run = run_of(workflow, profile)
    assert run.own == {"T#1": "wait 1000 ms"}
    took_ms = {task.name: run.own.get(task.name, task.function) for task in run.workflow.tasks}
    assert [run.profile.functions[each].latency_ms for each in took_ms.values()] == [1000.0, 3.0]

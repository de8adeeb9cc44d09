"""Two plans differ in figures and in who shares a process with whom, not in mere numbers."""

from __future__ import annotations

from chiron.scheduler.diff import compare
from chiron.scheduler.schedule import schedule
from chiron.workflow.plan import Plan, Wrap


def plan(*processes: tuple[str, ...], name: str = "demo-wrap1") -> Plan:
    wrap = Wrap(
        name=name,
        cpus=len(processes),
        memory_mib=96,
        mechanism="fork",
        processes=processes,
    )
    return Plan(format=2, workflow="demo", planner="pgp", wraps=(wrap,), cpus=wrap.cpus)


def test_a_plan_is_not_different_from_itself(workflow, profile, platform):
    scheduled = schedule(workflow("a a", "a"), profile(a="cpu 1"), platform(), 9.0)
    assert compare(scheduled, scheduled) == ()


def test_other_numbers_of_the_same_processes_are_no_difference():
    assert compare(plan(("a", "b"), ("c",)), plan(("c",), ("b", "a"))) == ()


def test_a_task_with_other_company_is_said_with_both_places():
    assert compare(plan(("a", "b"), ("c", "d", "e")), plan(("a",), ("c", "d", "e", "b"))) == (
        "b: the main process of demo-wrap1 -> process 2 of demo-wrap1",
    )


def test_tasks_that_move_together_share_a_line_and_other_processes_of_a_number_are_told_apart():
    old = plan(("a", "b", "c", "d"), ("e", "f"))
    new = plan(("e", "f", "a"), ("b", "c", "d"))
    assert compare(old, new) == (
        "a: the main process of demo-wrap1 -> the main process of demo-wrap1, which is another now",
    )
    assert compare(old, plan(("a", "b"), ("c", "d", "e", "f"))) == (
        "c, d: the main process of demo-wrap1 -> process 2 of demo-wrap1",
    )


def test_figures_that_changed_are_said(workflow, profile, platform):
    known, functions = workflow("a a"), profile(a="cpu 10")
    one = schedule(known, functions, platform(), 50.0)
    two = schedule(known, functions, platform(), 15.0)
    lines = compare(one, two)
    assert "SLO: 50 ms -> 15 ms" in lines
    assert "CPUs: 1 -> 2" in lines
    assert not any(line.startswith(("planner", "mechanism", "trigger", "meets")) for line in lines)


def test_another_trigger_is_a_difference():
    made = plan(("a",))
    other = made.model_copy(update={"trigger": "stage"})
    assert compare(made, other) == ("trigger: data -> stage",)


def test_tasks_of_one_plan_only_are_said():
    assert compare(plan(("a", "b")), plan(("a", "c"))) == (
        "b: only in the old plan",
        "c: only in the new plan",
    )

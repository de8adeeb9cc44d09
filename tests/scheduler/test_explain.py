"""The reasons say whether the SLO is met, what the model is, and who shares a GIL."""

from __future__ import annotations

from scheduler.schedule import schedule


def test_a_plan_that_meets_its_slo_says_by_how_much(workflow, profile, platform):
    plan = schedule(workflow("a"), profile(a="cpu 10"), platform(), 25.0)
    assert plan.why[0] == "predicted 10.1 ms, within the SLO of 25 ms"


def test_an_slo_out_of_reach_is_called_so_for_pgp_alone(workflow, profile, platform):
    known, functions = workflow("a"), profile(a="cpu 10")
    assert "out of reach" in schedule(known, functions, platform(), 5.0).why[0]
    sand = schedule(known, functions, platform(), 5.0, model="sand")
    assert "over the SLO" in sand.why[0] and "out of reach" not in sand.why[0]


def test_every_process_of_several_tasks_has_a_line_with_its_gil_time(workflow, profile, platform):
    functions = profile(a="cpu 10 block 5", b="cpu 1")
    plan = schedule(workflow("a a b", "b"), functions, platform(), 1000.0)
    shared = [line for line in plan.why if "share" in line and "GIL" in line]
    assert len(shared) == 1
    assert "demo-wrap1, stage 1, process 1: a, b (3 tasks) share 21.0 ms of GIL" in shared[0]


def test_the_lines_stay_few_words_for_many_functions(workflow, profile, platform):
    names = [f"f{number}" for number in range(200)]
    functions = profile(**dict.fromkeys(names, "cpu 0.1"))
    plan = schedule(workflow(" ".join(names)), functions, platform(), 1000.0)
    assert "and 196 more (200 tasks)" in plan.why[2]
    assert all(len(line) < 200 and line.isprintable() for line in plan.why)

"""The reasons say whether the SLO is met, what the planner is, and who shares a GIL."""

from __future__ import annotations

from chiron.scheduler.choices import Choices
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.schedule import schedule
from chiron.workflow.buckets import parse_buckets
from chiron.workflow.constraints import Constraints


def test_a_plan_that_meets_its_slo_says_by_how_much(workflow, profile, platform):
    plan = schedule(workflow("a"), profile(a="cpu 10"), platform(), 25.0)
    assert plan.why[0] == (
        "predicted 10.1 ms for 95 % of requests, within the SLO of 25 ms: "
        "it is kept in about 98% of cases like this"
    )


def test_a_platform_that_does_not_tell_how_requests_vary_is_named(workflow, profile, platform):
    asked = workflow("a"), profile(a="cpu 10")
    (line,) = [line for line in schedule(*asked, platform(), 25.0).why if "vary" in line]
    assert line.startswith(f"platform {platform().name} ") and "calibrate again" in line
    known = platform(work_variation=(1.0, 1.2))
    assert not any("vary" in line for line in schedule(*asked, known, 25.0).why)


def test_an_slo_out_of_reach_is_called_so_for_pgp_alone(workflow, profile, platform):
    known, functions = workflow("a"), profile(a="cpu 10")
    ours = schedule(known, functions, platform(), 5.0)
    assert "out of reach" in ours.why[0]
    assert ours.why[1] == "pgp: the fastest found, whatever it costs"
    sand = schedule(known, functions, platform(), 5.0, Choices(planner="sand"))
    assert "over the SLO" in sand.why[0] and "out of reach" not in sand.why[0]


def test_limits_that_may_keep_the_slo_out_of_reach_are_named(workflow, profile, platform):
    known, functions = workflow("a"), profile(a="cpu 10")
    tight = schedule(known, functions, platform(), 5.0, Choices(max_functions=1))
    assert "within --max-functions and --node-memory" in tight.why[0]
    assert "--max-functions" not in schedule(known, functions, platform(), 5.0).why[0]


def test_every_process_of_several_tasks_has_a_line_with_its_gil_time(workflow, profile, platform):
    functions = profile(a="cpu 10 block 5", b="cpu 1")
    plan = schedule(workflow("a a b", "b"), functions, platform(), 1000.0)
    shared = [line for line in plan.why if "share" in line and "GIL" in line]
    assert len(shared) == 1
    assert shared[0] == (
        "a and b (4 tasks) share the main process: together 22.0 ms of GIL, "
        "alone they would cost a CPU and a fork of 3.0 ms each"
    )


def test_tasks_that_follow_each_other_would_cost_no_cpu_alone(workflow, profile, platform):
    plan = schedule(workflow("a", "b"), profile(a="cpu 10", b="cpu 1"), platform(), 1000.0)
    assert any(line.endswith("alone they would cost a fork of 3.0 ms each") for line in plan.why)


def test_the_lines_stay_few_words_for_many_functions(workflow, profile, platform):
    names = [f"f{number}" for number in range(200)]
    functions = profile(**dict.fromkeys(names, "cpu 0.1"))
    plan = schedule(workflow(" ".join(names)), functions, platform(), 1000.0)
    assert any("f0, f1, f2, f3 and 196 more share the main process" in line for line in plan.why)
    assert all(len(line) < 200 and line.isprintable() for line in plan.why)


def test_a_plan_says_why_one_cpu_less_would_not_do(workflow, profile, platform):
    functions = profile(a="cpu 10")
    plan = schedule(workflow("a a a a"), functions, platform(), 24.0)
    assert plan.cpus == 2
    assert "2 CPUs: one less takes 40.4 ms at the very least, as all have to compute" in plan.why
    both = workflow("a a a a", "a"), functions, platform(), 34.0
    stages, data = (schedule(*both, Choices(trigger=trigger)) for trigger in ("stage", "data"))
    assert any("2 CPUs: one less takes" in line for line in stages.why)
    assert "2 CPUs: of the plans found with one less, none meets the SLO" in data.why
    near = schedule(workflow("a a a a"), functions, platform(switch_cost_ms=1.0), 40.5)
    assert "2 CPUs: of the plans found with one less, none meets the SLO" in near.why


def test_many_processes_are_counted_after_the_first_dozen(workflow, profile, platform):
    plan = schedule(workflow("a " * 40), profile(a="cpu 50"), platform(), 140.0)
    assert plan.cpus == 20
    assert "and 8 more processes like these" in plan.why


def test_a_fixed_planner_owns_up_to_the_conflicts_that_it_breaks(workflow, profile, platform):
    functions = profile(a="cpu 1", b="cpu 1")
    other = {
        name: function.model_copy(update={"runtime": f"python3.{name}"})
        for name, function in functions.functions.items()
    }
    functions = functions.model_copy(update={"functions": other})
    sand = schedule(workflow("a b"), functions, platform(), 50.0, Choices(planner="sand"))
    assert "conflict that sand does not respect: a needs python3.a and b python3.b" in sand.why
    pgp = schedule(workflow("a b"), functions, platform(), 50.0)
    assert "a shares no wrap with b: a needs python3.a and b python3.b" in pgp.why


def test_a_fixed_planner_owns_up_to_conflicts_of_a_process_in_whatever_stage(
    workflow, profile, platform
):
    functions = profile(a="cpu 1", b="cpu 1")
    calling = functions.functions["a"].model_copy(update={"unshareable": ("os.chdir",)})
    functions = functions.model_copy(update={"functions": {**functions.functions, "a": calling}})

    def said(planner, *stages):
        plan = schedule(workflow(*stages), functions, platform(), 50.0, Choices(planner=planner))
        return [line.partition(" does not respect: ")[2] for line in plan.why if "respect" in line]

    reason = "a changes what its whole process shares (os.chdir)"
    assert said("sand", "a", "b") == [reason]  # of one process, one after the other
    assert said("sand", "a b") == []
    assert said("faastlane", "b a", "b") == []
    assert said("faastlane", "b", "b a", "a") == [reason]  # of the main process
    assert said("faastlane", "b a", "b b") == [reason]
    assert said("faastlane-t", "a a") == [reason]
    assert said("one-to-one", "a a", "b") == []


def test_more_functions_than_allowed_are_said_with_what_to_change(workflow, profile, platform):
    known, functions = workflow("a " * 16), profile(a="cpu 1")
    plan = schedule(known, functions, platform(), 99.0, Choices(planner="one-to-one"))
    assert plan.why[-1] == (
        "limit: 16 functions to deploy, 15 allowed (Community Edition: 15): "
        "--planner pgp needs fewer, or raise --max-functions"
    )
    assert not any("limit" in line for line in schedule(known, functions, platform(), 99.0).why)


def test_a_wrap_larger_than_a_node_is_said_with_what_to_change(workflow, profile, platform):
    plan = schedule(workflow("a"), profile(a="cpu 1"), platform(), 9.0, Choices(node_memory_mib=64))
    assert plan.why[-1] == (
        "limit: demo-wrap1 needs 96 MiB, a node has 64: "
        "smaller ones were not found, or raise --node-memory"
    )


def test_every_wrap_says_what_runs_in_it_and_several_say_why(workflow, profile, platform):
    place = platform(rpc_ms=5.0, process_block_ms=40.0, process_startup_ms=40.0, ipc_ms=0.0)
    known, functions = workflow("a a a a", "a"), profile(a="cpu 100")
    plan = schedule(known, functions, place, 250.0)
    assert "demo-wrap1: 3 tasks in 2 processes on 2 CPUs, 112 MiB" in plan.why
    assert "demo-wrap2: 2 tasks in 2 processes on 2 CPUs, 112 MiB" in plan.why
    assert (
        "2 wraps: a node has 64 CPUs, a call costs 5.0 ms, a fork 40.0 ms for those after it"
        in plan.why
    )


def test_one_reason_against_many_functions_is_one_line(workflow, profile, platform):
    functions = profile(**dict.fromkeys("abcdefg", "cpu 1"))
    settings = FolderSettings(Constraints(format=1, isolate={"c": "process"}))
    plan = schedule(workflow(" ".join("abcdefg")), functions, platform(), 99.0, settings=settings)
    (line,) = [line for line in plan.why if "constraints" in line]
    assert line == (
        "c shares no process with a, b, d, e and 2 more: "
        "constraints.json wants c in a process of its own"
    )


def test_what_windows_wait_is_told_beside_the_latency(profile, platform):
    window = {"trigger": "by-time", "window_ms": 1000, "function": "a"}
    known = parse_buckets({"entry": "views", "buckets": {"views": window}}, "demo")
    plan = schedule(known, profile(a="cpu 10"), platform(), 25.0)
    told = "in bucket views for 500 ms on average and 1000 ms at most"
    assert any(told in line for line in plan.why)

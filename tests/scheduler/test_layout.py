"""A layout becomes a plan with CPUs, memory and names for every wrap."""

from __future__ import annotations

import pytest

from chiron.scheduler.choices import Choices
from chiron.scheduler.layout import aligned, over_stages, plan_from_layout, widest, wrap_name
from chiron.scheduler.planners import PLANNERS
from chiron.scheduler.schedule import schedule
from chiron.workflow.dag import parse_dag
from chiron.workflow.names import NAME


def test_a_wrap_has_a_cpu_for_each_process_of_its_widest_stage(workflow, profile):
    layout = (((("s0t0",), ("s0t1",)), (("s0t2",),)), ((("s1t0",),),))
    plan = plan_from_layout(
        layout, workflow("a a a", "a"), profile(a="cpu 1"), planner="pgp", mechanism="fork"
    )
    assert [wrap.cpus for wrap in plan.wraps] == [2, 1]
    assert [wrap.processes for wrap in plan.wraps] == [
        (("s0t0", "s1t0"), ("s0t1",)),
        (("s0t2",),),
    ]
    assert plan.cpus == 3


def test_a_process_has_what_is_in_its_place_in_every_stage():
    stages = [(("a",),), ((), ("b",), ("c", "d")), (("e",), ("f",))]
    assert over_stages(stages) == (("a", "e"), ("b", "f"), ("c", "d"))


def test_a_process_joins_the_first_that_it_gets_on_with_or_is_one_more():
    enemies = [{"b", "d"}, {"c", "e"}, {"f", "b"}, {"f", "d"}, {"f", "c"}]
    stages = [((), ("b",), ("c",)), ((), ("d",), ("e",)), ((), ("f",))]

    def get_on(tasks, others):
        return not any({task, other} in enemies for task in tasks for other in others)

    assert over_stages(stages, get_on) == ((), ("b", "e"), ("c", "d"), ("f",))


def test_an_empty_main_process_needs_no_cpu():
    assert widest([((), ("a",), ("b",))]) == 2


def test_memory_is_for_all_that_runs_at_once_in_steps_of_16(workflow, profile):
    functions = profile(a="cpu 1", b="cpu 1")
    heavy = functions.model_copy(
        update={
            "functions": {
                name: function.model_copy(update={"memory_mib": mib})
                for (name, function), mib in zip(
                    functions.functions.items(), (10.0, 100.0), strict=True
                )
            }
        }
    )
    two, one = ((("s0t0",), ("s0t1",)),), ((("s1t0",),),)
    memory_mib = {
        last: plan_from_layout(
            (two, one), workflow("a a", last), heavy, planner="pgp", mechanism="fork"
        )
        .wraps[0]
        .memory_mib
        for last in ("a", "b")
    }
    # 96 for the wrap and Flask, 16 for a process, which stays; two of a 20, or b and one of a 110.
    assert memory_mib == {"a": 144, "b": 224}


def test_what_functions_import_is_in_memory_once_for_those_with_the_same_requirements(
    workflow, profile
):
    measured = profile(a="cpu 1", b="cpu 1", c="cpu 1")
    imported = {
        "a": {"idle_mib": 184.0, "requirements": ("scikit-learn",)},
        "b": {"idle_mib": 180.0, "requirements": ("scikit-learn",)},
        "c": {"idle_mib": 64.0, "requirements": ("pillow",)},
    }
    functions = {
        name: measured.functions[name].model_copy(update=fields)
        for name, fields in imported.items()
    }
    known = measured.model_copy(update={"functions": functions})
    layout = (((("s0t0", "s0t1", "s0t2"),),),)
    plan = plan_from_layout(layout, workflow("a b c"), known, planner="pgp", mechanism="fork")
    # 84 for the wrap, of which an idle one takes 32; 184 - 32 and 64 - 32 more.
    assert plan.wraps[0].memory_mib == 272
    assert plan.wraps[0].demand.imports_mib == 184


def test_a_wrap_has_memory_for_what_functions_take_in_further_processes(workflow, profile):
    measured = profile(a="cpu 1")
    forked = measured.functions["a"].model_copy(update={"memory_mib": 2.0, "forked_mib": 60.0})
    known = measured.model_copy(update={"functions": {"a": forked}})
    layout = (((("s0t0",), ("s0t1",), ("s0t2",)),),)
    plan = plan_from_layout(layout, workflow("a a a"), known, planner="pgp", mechanism="pool")
    # 96 for the wrap and Flask, 2 in its main process; 16 for each other, and 60 less the 4 of
    # each request.
    assert plan.wraps[0].demand.memory_mib == 2 + 2 * 56
    assert plan.wraps[0].memory_mib == 256


def test_a_wrap_says_what_its_functions_take_for_a_request(workflow, profile):
    functions = profile(a="cpu 3 block 40 native*2 1")
    layout = (((("s0t0",), ("s0t1",)),), ((("s1t0",),),))
    plan = plan_from_layout(
        layout, workflow("a a", "a"), functions, planner="pgp", mechanism="fork"
    )
    assert plan.wraps[0].demand is not None
    assert plan.wraps[0].demand.cpu_ms == 15.0


@pytest.mark.parametrize(
    ("workflow", "suffix", "name"),
    [
        ("demo", "wrap1", "demo-wrap1"),
        ("w" * 63, "wrap1", "w" * 39 + "-wrap1"),
        ("demo", "f" * 43, "d-" + "f" * 43),
        ("demo", "f" * 44, "f" * 44),
        ("demo", "g" + "f" * 62, "f" * 45),
    ],
)
def test_long_workflow_names_are_cut_and_what_tells_wraps_apart_is_kept(workflow, suffix, name):
    assert wrap_name(workflow, suffix) == name
    assert NAME.fullmatch(name)


@pytest.mark.parametrize("name", ["demo", "w" * 63])
def test_planners_of_one_workflow_can_be_deployed_side_by_side(workflow, profile, platform, name):
    known, functions = workflow("a", name=name), profile(a="cpu 1")
    plans = [
        schedule(known, functions, platform(), 9.0, Choices(planner=label)) for label in PLANNERS
    ]
    names = [plan.wraps[0].name for plan in plans]
    assert len(set(names)) == len(names)


def test_tasks_go_on_in_the_process_that_has_most_of_what_they_need():
    tasks = dict.fromkeys("abcdef", "work")
    known = parse_dag({"tasks": tasks, "edges": [["a", "d"], ["b", "c"], ["b", "e"]]}, "crossed")
    first = (("a",), ("b",), ("f",))
    layout = ((first,), ((("c", "e"), ("d",)),))
    assert aligned(layout, known) == ((first,), ((("d",), ("c", "e")),))
    assert aligned(aligned(layout, known), known) == aligned(layout, known)

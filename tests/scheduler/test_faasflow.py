"""FaaSFlow's partition: merges along the critical path, within quota, capacity and contention."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.predictor.unrolling import Run
from chiron.scheduler.choices import Choices
from chiron.scheduler.conflicts import Conflicts
from chiron.scheduler.faasflow import Group, hashed, merges, packed
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.limits import Limits
from chiron.scheduler.planners import PLANNERS
from chiron.scheduler.room import Room
from chiron.scheduler.schedule import schedule
from chiron.scheduler.traffic import Traffic, Weight, transfer_ms
from chiron.workflow.constraints import Constraints
from chiron.workflow.dag import parse_dag
from chiron.workflow.model import Workflow
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Period, Profile
from tests.examples import FEWER

MIB = 2**20


def graph(name: str, **needs: str) -> Workflow:
    """Tasks by what they need: ``graph("demo", a="", b="a", c="a b")``; each has a function."""
    edges = [[before, task] for task, text in needs.items() for before in text.split()]
    return parse_dag({"tasks": {task: f"f-{task}" for task in needs}, "edges": edges}, name)


def measured(**functions: tuple[float, float]) -> Profile:
    """Tasks by how long they compute, in milliseconds, and how much they give, in MiB."""
    found = {
        f"f-{task}": FunctionProfile(
            latency_ms=ms,
            periods=(Period(kind="cpu", start_ms=0, duration_ms=ms),),
            input_bytes=0,
            output_bytes=round(mib * MIB),
        )
        for task, (ms, mib) in functions.items()
    }
    return Profile(format=1, workflow="demo", functions=found)


def room(
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    apart: Sequence[tuple[str, str]] = (),
    **limits: Any,
) -> Room:
    """Where wraps are made of a workflow that decides nothing."""
    run = Run(workflow, profile, decided=False)
    pairs = {(min(pair), max(pair)): "they compete" for pair in apart}
    return Room(
        run,
        Traffic.of([run], profile.mix, platform),
        platform,
        Conflicts(workflow.functions, pairs, pairs),
        Limits(**limits),
    )


def all_merges(room: Room) -> list[list[Group]]:
    return list(merges(room.units, room.traffic, room.holds))


@pytest.fixture
def many(platform) -> Platform:
    """Wraps with 64 cores each, and calls that take 8 ms."""
    return platform()


#: a, then b beside c and d, which are a short way round; e has what both ways gave.
DETOUR = graph("detour", a="", b="a", c="a", d="c", e="b d")
TIMES = measured(a=(10, 2), b=(50, 4), c=(5, 1), d=(5, 1), e=(10, 0))


def test_groups_merge_along_the_heaviest_edges_of_the_critical_path(many):
    """By hand, with 8 ms for each edge between two groups.

    a 8 b 8 e takes 86 ms, its heaviest edge is b to e; then a 8 b e takes 78 ms, and a joins, which
    makes 70 ms. The way round, a 8 c 8 d 8 e, takes 54 ms: it was and is not critical.
    """
    steps = all_merges(room(DETOUR, TIMES, many))
    assert [len(groups) for groups in steps] == [5, 4, 3]
    assert [set(map(frozenset, groups)) for groups in steps[1:]] == [
        {frozenset("a"), frozenset("be"), frozenset("c"), frozenset("d")},
        {frozenset("abe"), frozenset("c"), frozenset("d")},
    ]
    lengths = []
    for groups in steps:
        group_of = {task: group for group in groups for task in group}
        lengths.append(room(DETOUR, TIMES, many).traffic.critical_path(group_of)[0])
    assert lengths == [86, 78, 70]


def test_a_way_round_that_becomes_critical_is_merged_too(many):
    slow = measured(a=(10, 2), b=(50, 4), c=(15, 1), d=(20, 1), e=(10, 0))
    steps = all_merges(room(DETOUR, slow, many))
    # 10 + 8 + 15 + 8 + 20 + 8 + 10 = 79 ms, then 71 ms, which still is over the 70 ms of the other.
    (main,) = (group for group in steps[-1] if "a" in group)
    assert {"a", "b", "e"} < set(main)


@pytest.mark.parametrize(
    ("known", "ms"),
    [
        ({}, 8.0),
        ({"direct": (1, 0), "gateway": (5, 10)}, 25.0),
        ({"direct": (1, 0), "gateway": (5, 10), "store": (4, 6)}, 16.0),
    ],
)
def test_an_object_that_leaves_its_group_goes_by_a_store_or_the_gateway(platform, known, ms):
    paths = {path: {"ms": ms, "ms_per_mb": slope} for path, (ms, slope) in known.items()}
    assert transfer_ms(2_000_000, platform(paths=paths)) == ms


def test_a_plan_has_the_groups_as_wraps_the_first_of_which_gets_the_request(many):
    plan = schedule(DETOUR, TIMES, many, 500.0, Choices(planner="faasflow"))
    assert [wrap.processes for wrap in plan.wraps] == [(("a", "b", "e"),), (("c",),), (("d",),)]
    assert [wrap.name for wrap in plan.wraps] == [
        f"detour-faasflow-wrap{number}" for number in (1, 2, 3)
    ]
    assert (plan.cpus, plan.path, plan.trigger) == (3, "auto", "data")
    gateway = schedule(DETOUR, TIMES, many, 500.0, Choices(planner="faasflow", path="gateway"))
    assert (gateway.path, gateway.cpus) == ("gateway", 3)
    assert plan.why[1] == f"faasflow: {PLANNERS['faasflow'].rule}"


def test_objects_within_a_wrap_are_in_its_memory(many):
    plan = schedule(DETOUR, TIMES, many, 500.0, Choices(planner="faasflow"))
    bare = schedule(DETOUR, measured(**dict.fromkeys("abcde", (10, 0))), many, 500.0)
    # a and b give 2 and 4 MiB there, and memory is in units of 16 MiB.
    assert plan.wraps[0].memory_mib == bare.wraps[0].memory_mib + 16


def test_what_does_not_fit_the_quota_stays_apart(many):
    """A container of 96 MiB that takes 32 and keeps a fifth leaves 44.8 for objects."""
    pair, times = graph("pair", a="", b="a"), {"b": (10.0, 500.0)}
    held = room(pair, measured(a=(10, 89), **times), many)
    assert held.quota_mib("ab") == pytest.approx(2 * 44.8)
    assert len(all_merges(held)[-1]) == 1
    assert len(all_merges(room(pair, measured(a=(10, 90), **times), many))[-1]) == 2


def test_the_next_edge_counts_where_the_heaviest_has_no_room(many):
    line = graph("line", a="", b="a", c="b")
    times = measured(a=(10, 3), b=(10, 2), c=(10, 0))
    steps = all_merges(room(line, times, many, apart=[("f-a", "f-b")]))
    assert set(map(frozenset, steps[-1])) == {frozenset("a"), frozenset("bc")}


@pytest.mark.parametrize(("one_node", "wraps"), [(False, 4), (True, 1)])
def test_a_wrap_has_no_more_processes_than_cores_of_its_own(platform, one_node, wraps):
    fan = graph("fan", a="", **dict.fromkeys("bcdefgh", "a"), z="b c d e f g h")
    times = measured(**dict.fromkeys("abcdefghz", (10.0, 1.0)))
    place = platform(cpus=2, one_node=one_node)
    plan = schedule(fan, times, place, 500.0, Choices(planner="faasflow", max_functions=4))
    assert len(plan.wraps) == wraps
    groups = all_merges(room(fan, times, place))[-1]
    assert max(len(room(fan, times, place).processes(group)) for group in groups) == (
        7 if one_node else 2
    )


def test_groups_that_are_more_than_wraps_share_some(many):
    """Thirty tasks in the shade of a long one, none of which is ever on the critical path."""
    shade = {f"t{number}": "a" for number in range(30)}
    wide = graph("wide", a="", long="a", **shade)
    times = measured(a=(1, 1), long=(100, 1), **dict.fromkeys(shade, (1, 1)))
    plan = schedule(wide, times, many, 500.0, Choices(planner="faasflow"))
    assert len(plan.wraps) == 15
    assert not any("limit" in line for line in plan.why)
    more = schedule(wide, times, many, 500.0, Choices(planner="faasflow", max_functions=99))
    assert len(more.wraps) == 31


def test_the_smallest_group_joins_that_with_which_it_exchanges_most():
    weights = {("a", "b"): Weight(8.0, 1), ("d", "c"): Weight(5.0, 1), ("b", "d"): Weight(9.0, 1)}
    traffic = Traffic(weights, {}, {}, ())
    groups: list[Group] = [("a", "x"), ("b", "y"), ("c", "z", "w"), ("d",)]
    assert packed(groups, traffic, 3, lambda _: True) == [("a", "x"), ("b", "y", "d"), groups[2]]
    full = packed(groups, traffic, 3, lambda group: "b" not in group)
    assert full == [("a", "x"), ("b", "y"), ("c", "z", "w", "d")]
    assert len(packed(groups, traffic, 1, lambda _: False)) == 4


def test_processes_share_cores_only_where_there_may_be_no_more_wraps(platform):
    fan = graph("fan", a="", **dict.fromkeys("bcdefgh", "a"))
    times = measured(**dict.fromkeys("abcdefgh", (10.0, 1.0)))
    found = {}
    for most in (8, 7, 3):
        choices = Choices(planner="faasflow", max_functions=most)
        plan = schedule(fan, times, platform(cpus=1), 500.0, choices)
        found[most] = sorted(len(wrap.processes) for wrap in plan.wraps)
    # One of b to h goes on where a was.
    assert found == {8: [1] * 7, 7: [1] * 7, 3: [2, 2, 3]}


def test_no_wrap_is_larger_than_a_node(many):
    line = graph("line", a="", b="a", c="b", d="c")
    times = measured(**dict.fromkeys("abcd", (10.0, 1.0)))
    for function in times.functions:
        times.functions[function] = times.functions[function].model_copy(
            update={"memory_mib": 100.0, "idle_mib": 46.0, "requirements": (function,)}
        )
    plan = schedule(line, times, many, 500.0, Choices(planner="faasflow", node_memory_mib=240))
    assert 1 < len(plan.wraps) < 4
    assert max(wrap.memory_mib for wrap in plan.wraps) <= 240


def test_what_has_to_share_a_wrap_does_and_what_must_not_does_not(many):
    constraints = Constraints(format=1, isolate={"f-b": "wrap"}, together=(("f-c", "f-a"),))
    plan = schedule(
        DETOUR, TIMES, many, 500.0, Choices(planner="faasflow"),
        FolderSettings(constraints=constraints),
    )  # fmt: skip
    wrap_of = {task: wrap.name for wrap in plan.wraps for task in wrap.tasks}
    assert wrap_of["a"] == wrap_of["c"]
    assert [wrap.tasks for wrap in plan.wraps if "b" in wrap.tasks] == [("b",)]
    assert any("shares no wrap" in line for line in plan.why)


def test_what_must_not_share_a_process_does_not(many):
    constraints = Constraints(format=1, isolate={"f-b": "process"})
    plan = schedule(
        DETOUR, TIMES, many, 500.0, Choices(planner="faasflow"),
        FolderSettings(constraints=constraints),
    )  # fmt: skip
    assert plan.wraps[0].processes == (("a", "e"), ("b",))


def test_where_nothing_is_measured_a_task_is_where_its_name_says(many, profile):
    names = [f"t{number}" for number in range(40)]
    wide = graph("wide", a="", **dict.fromkeys(names, "a"))
    unmeasured = profile(**dict.fromkeys(wide.functions, "cpu 1"))
    choices = Choices(planner="faasflow", max_functions=6)
    plan = schedule(wide, unmeasured, many, 500.0, choices)
    assert 1 < len(plan.wraps) <= 6
    assert plan.wraps[0].tasks[0] == "a"
    fewer = graph("wide", a="", **dict.fromkeys(names[5:], "a"))
    other = schedule(fewer, unmeasured, many, 500.0, choices)
    kept = frozenset(fewer.by_name)
    assert {frozenset(wrap.tasks) & kept for wrap in plan.wraps} == {
        frozenset(wrap.tasks) for wrap in other.wraps
    }


def test_a_task_whose_place_is_full_goes_to_the_next_one():
    units: list[Group] = [(f"t{number}",) for number in range(6)]
    groups = hashed(units, [()] * 4, lambda group: len(group) <= 2)
    assert sorted(task for group in groups for task in group) == sorted(u for (u,) in units)
    assert max(map(len, groups)) == 2
    assert hashed(units, [], lambda _: False) == units


@st.composite
def graphs(draw: Callable[..., Any]) -> tuple[Workflow, Profile]:
    """Up to twelve tasks, each of which needs some of those before it."""
    count = draw(st.integers(1, 12))
    needs, functions = {}, {}
    for number in range(count):
        before = draw(st.sets(st.integers(0, number - 1), max_size=3)) if number else set()
        needs[f"t{number}"] = " ".join(f"t{other}" for other in sorted(before))
        functions[f"t{number}"] = (
            float(draw(st.integers(0, 60))),
            draw(st.sampled_from([0.0, 0.5, 4.0, 20.0, 40.0, 90.0])),
        )
    return graph("random", **needs), measured(**functions)


places = st.fixed_dictionaries(
    {
        "cpus": st.sampled_from([1, 2, 4]),
        "one_node": st.booleans(),
        "rpc_ms": st.sampled_from([0.0, 1.0, 20.0]),
        "paths": st.sampled_from([{}, {"store": {"ms": 2.0, "ms_per_mb": 5.0}}]),
    }
)
pairs = st.lists(st.tuples(st.integers(0, 11), st.integers(0, 11)), max_size=3)


@FEWER
@given(graphs(), places, pairs)
def test_a_merge_makes_neither_the_cut_nor_the_critical_path_longer(platform, drawn, place, pairs):
    workflow, profile = drawn
    made = room(workflow, profile, platform(**place), _apart(workflow, pairs))
    states = []
    for groups in all_merges(made):
        assert sorted(task for group in groups for task in group) == sorted(workflow.by_name)
        assert all(made.holds(group) for group in groups if len(group) > 1)
        group_of = {task: group for group in groups for task in group}
        critical_ms, _ = made.traffic.critical_path(group_of)
        cut_ms = sum(
            weight.ms
            for (giver, taker), weight in made.traffic.weights.items()
            if group_of[giver] != group_of[taker]
        )
        states.append((len(groups), cut_ms, critical_ms))
    for before, after in pairwise(states):
        assert after[0] == before[0] - 1
        assert after[1] <= before[1] + 1e-9 and after[2] <= before[2] + 1e-9


@FEWER
@given(graphs(), places, pairs, st.integers(1, 12))
def test_quota_cores_and_contention_hold_for_every_wrap(platform, drawn, place, pairs, most):
    workflow, profile = drawn
    apart = _apart(workflow, pairs)
    made = room(workflow, profile, platform(**place), apart, functions=most)
    wraps = [
        [task for process in processes for task in process]
        for processes, _ in PLANNERS["faasflow"].partition(made)
    ]
    assert sorted(task for wrap in wraps for task in wrap) == sorted(workflow.by_name)
    for wrap in wraps:
        assert made.kept_mib(wrap) <= made.quota_mib(wrap)
        inside = {workflow.function_of(task) for task in wrap}
        assert not any({*pair} <= inside for pair in apart)
        for process in made.processes(wrap):
            assert all(a in workflow.ancestors[b] for a, b in pairwise(process))
        if not place["one_node"] and len(all_merges(made)[-1]) <= most:
            assert len(made.processes(wrap)) <= place["cpus"]


def _apart(workflow: Workflow, pairs: Sequence[tuple[int, int]]) -> list[tuple[str, str]]:
    """Pairs of functions by their numbers, as far as there are so many."""
    names = workflow.functions
    return [(names[a], names[b]) for a, b in pairs if a != b and max(a, b) < len(names)]


@given(st.randoms(use_true_random=False))
@FEWER
def test_what_pgp_finds_is_not_slower_where_objects_cost_something(platform, order):
    names = "abcdefgh"
    needs = {
        name: " ".join(order.sample(names[:number], min(number, order.randint(0, 2))))
        for number, name in enumerate(names)
    }
    workflow = graph("any", **needs)
    times = measured(**{name: (order.uniform(1, 40), order.uniform(0, 4)) for name in names})
    paths = {"direct": {"ms": 0.5, "ms_per_mb": order.uniform(1, 20)}}
    place = platform(cpus=2, rpc_ms=0.5, paths=paths)
    slo_ms = 1.0  # which nothing meets: the fastest plan counts
    ours, theirs = (
        schedule(workflow, times, place, slo_ms, Choices(planner=planner)).predicted
        for planner in ("pgp", "faasflow")
    )
    assert ours.latency_ms <= theirs.latency_ms + 0.01

"""PGP finds few processes that meet the SLO, packs them, and says so when there are none."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from predictor.predict import predict
from scheduler.pgp import Partition, Search, initial_sizes, pack, partition_stage
from scheduler.schedule import schedule
from workflow.plan import Plan

several = settings(deadline=None, max_examples=60)

periods = st.tuples(st.sampled_from(["cpu", "cpu", "block", "native"]), st.integers(0, 20))
texts = st.lists(periods, min_size=1, max_size=3).map(
    lambda listed: " ".join(f"{kind} {duration}" for kind, duration in listed)
)
profiles = st.fixed_dictionaries(dict.fromkeys("abcd", texts))
stages = st.lists(
    st.lists(st.sampled_from("abcd"), min_size=1, max_size=5).map(" ".join), min_size=1, max_size=3
)
constants = st.fixed_dictionaries(
    {
        "cpus": st.sampled_from([1, 2, 64]),
        "rpc_ms": st.sampled_from([0.0, 5.0, 20.0]),
        "process_startup_ms": st.sampled_from([0.0, 1.0, 4.0]),
        "process_block_ms": st.sampled_from([0.0, 0.5, 3.0]),
    }
)
mechanisms = st.sampled_from(["fork", "pool"])
slos = st.floats(0.5, 200.0)


def reached(search: Search) -> dict[int, float]:
    """The latency that the search finds for every count of processes that it may try."""
    stages = [search.numbers(stage) for stage in search.workflow.stages]
    return {
        count: search.total_ms(
            [partition_stage(search, stage, min(count, len(stage)))[0] for stage in stages]
        )
        for count in range(1, max(map(len, stages)) + 1)
    }


@several
@given(stages, profiles, constants, mechanisms, slos)
def test_every_task_is_in_exactly_one_process_and_the_verdict_is_the_predictors(
    workflow, profile, platform, stages, profiles, constants, mechanism, slo_ms
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    plan = schedule(known, functions, place, slo_ms, mechanism=mechanism)
    plan.check_against(known)
    assert plan.predicted == predict(plan, known, functions, place)
    assert plan.meets_slo == (plan.predicted.latency_ms <= slo_ms)
    assert plan.slo_ms == slo_ms


@several
@given(stages, profiles, constants, mechanisms)
def test_a_looser_slo_never_costs_more_cpus(
    workflow, profile, platform, stages, profiles, constants, mechanism
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    found = reached(Search.of(known, functions, place, mechanism)).values()
    slos = sorted({0.5, *(ms * by + 0.01 for ms in found for by in (0.9, 1.0, 1.1))})
    cpus = [schedule(known, functions, place, s, mechanism=mechanism).cpus for s in slos]
    assert cpus == sorted(cpus, reverse=True)


@several
@given(stages, profiles, constants, mechanisms, st.integers(0, 4))
def test_an_slo_that_some_count_reaches_is_met_after_packing_too(
    workflow, profile, platform, stages, profiles, constants, mechanism, pick
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    found = reached(Search.of(known, functions, place, mechanism))
    slo_ms = sorted(found.values())[pick % len(found)] + 0.001
    plan = schedule(known, functions, place, slo_ms, mechanism=mechanism)
    fewest = min(count for count, ms in found.items() if ms <= slo_ms)
    assert plan.meets_slo
    assert max(sum(map(len, processes_of(plan, s))) for s in range(len(known.stages))) == fewest


def processes_of(plan: Plan, stage: int) -> list[tuple[tuple[str, ...], ...]]:
    """The processes of every wrap in one stage."""
    return [part.processes for _, part in plan.stage(stage)]


@several
@given(stages, profiles, constants, mechanisms)
def test_an_slo_out_of_reach_is_answered_with_the_fastest_that_was_found(
    workflow, profile, platform, stages, profiles, constants, mechanism
):
    known, functions, place = workflow(*stages), profile(**profiles), platform(**constants)
    fastest_ms = min(reached(Search.of(known, functions, place, mechanism)).values())
    if fastest_ms < 0.01:
        return  # nothing is out of reach of functions that take no time
    plan = schedule(known, functions, place, fastest_ms * 0.9, mechanism=mechanism)
    assert not plan.meets_slo
    assert plan.predicted.latency_ms <= fastest_ms + 0.001


def test_swaps_that_pay_only_together_are_found(workflow, profile, platform):
    class Valley(Search):
        """Any one swap is worse; all of them are best."""

        def stage_ms(self, partition: Partition, sizes: Sequence[int]) -> float:
            return {((0, 2), (1, 3)): 10.0, ((1, 3), (0, 2)): 1.0}.get(partition, 20.0)

    known, functions = workflow("a b c d"), profile(**dict.fromkeys("abcd", "cpu 1"))
    search = Valley.of(known, functions, platform(), "pool")
    assert partition_stage(search, (0, 1, 2, 3), 2) == (1.0, ((1, 3), (0, 2)))


def test_a_loose_slo_needs_one_process(workflow, profile, platform):
    plan = schedule(workflow("a a a", "a"), profile(a="cpu 10"), platform(), 1000.0)
    assert plan.cpus == 1
    assert [wrap.name for wrap in plan.wraps] == ["demo-wrap1"]
    assert processes_of(plan, 0) == [(("s0t0", "s0t1", "s0t2"),)]


def test_waiting_functions_share_a_process_with_computing_ones(workflow, profile, platform):
    """Two of 20 ms on the GIL cannot share 30 ms; each can with one that only waits."""
    functions = profile(work="cpu 20", rest="block 20")
    plan = schedule(workflow("work work rest rest"), functions, platform(), 30.0)
    assert plan.meets_slo and plan.cpus == 2
    uses = workflow("work work rest rest").function_of
    assert [sorted(map(uses, process)) for process in processes_of(plan, 0)[0]] == [
        ["rest", "work"],
        ["rest", "work"],
    ]


def test_all_workers_of_a_pool_are_in_one_wrap(workflow, profile, platform):
    place = platform(rpc_ms=0.0, process_block_ms=50.0)
    plan = schedule(workflow("a " * 8, "a a"), profile(a="cpu 10"), place, 12.0, mechanism="pool")
    assert len(plan.wraps) == 1
    assert len(processes_of(plan, 0)[0]) == 8


@pytest.mark.parametrize(
    ("count", "rpc_ms", "block_ms", "sizes"),
    [
        (5, 10.0, 3.0, [3, 1, 1]),
        (2, 10.0, 3.0, [2]),
        (3, 10.0, 3.0, [3]),
        (4, 9.0, 3.0, [3, 1]),
        (3, 1.0, 3.0, [1, 1, 1]),
        (3, 0.0, 3.0, [1, 1, 1]),
        (4, 10.0, 0.0, [4]),
        (4, 10.0, 5e-324, [4]),
    ],
)
def test_wrap_1_forks_no_more_than_a_remote_call_outlasts(platform, count, rpc_ms, block_ms, sizes):
    place = platform(rpc_ms=rpc_ms, process_block_ms=block_ms)
    assert initial_sizes(count, place, "fork") == sizes
    assert initial_sizes(count, place, "pool") == [count]


def test_processes_move_into_fewer_wraps_while_the_slo_bears_it(workflow, profile, platform):
    """Each further fork makes the others wait 4 ms; a remote call costs 5 ms and 0.2 a wrap."""
    known, functions = workflow("a a a a"), profile(a="cpu 20")
    place = platform(rpc_ms=5.0, process_block_ms=4.0, ipc_ms=0.0, thread_startup_ms=0.0)
    search = Search.of(known, functions, place, "fork")
    partition = tuple((f,) for f in search.numbers(known.stages[0]))
    wraps = {
        limit_ms: [size for _, sizes in pack(search, [partition], limit_ms) for size in sizes]
        for limit_ms in (100.0, 31.9, 29.3, 29.1, 26.0)
    }
    # All in one: three forks, 12 + 20. Two and two: 4 + 20 here, 5 + 0.2 + 24 there.
    assert wraps[100.0] == [4]
    assert wraps[31.9] == wraps[29.3] == [2, 2]
    # Three wraps put two in the first ones again, so one each is all that is left.
    assert wraps[29.1] == wraps[26.0] == [1, 1, 1, 1]


def partitions(stage: tuple[int, ...], count: int) -> Iterator[Partition]:
    """Every way to put the functions of a stage into `count` processes, none of them empty."""
    for places in product(range(count), repeat=len(stage)):
        if len(set(places)) == count:
            yield tuple(
                tuple(f for f, place in zip(stage, places, strict=True) if place == process)
                for process in range(count)
            )


def random_case(seed: int, workflow: Any, profile: Any, platform: Any) -> tuple[Search, float]:
    """A stage of 2 to 5 random functions; how far the SLO is from the best to one process."""
    r = random.Random(seed)
    names = "abcde"[: r.randint(2, 5)]
    texts = {
        name: " ".join(
            f"{r.choice(['cpu', 'block', 'native'])} {r.randint(1, 20)}"
            for _ in range(r.randint(1, 3))
        )
        for name in names
    }
    place = platform(
        cpus=8,
        rpc_ms=r.choice([5.0, 8.0, 20.0]),
        process_startup_ms=r.choice([1.0, 3.0]),
        process_block_ms=r.choice([0.5, 1.0, 4.0]),
    )
    mechanism = r.choice(["fork", "pool"])
    search = Search.of(workflow(" ".join(names)), profile(**texts), place, mechanism)
    return search, r.random()


def test_few_tiny_stages_could_do_with_fewer_processes(workflow, profile, platform):
    """Against all partitions: never fewer than possible, as few in nine of ten stages.

    Over 800 such stages the count is the least in 96 %, and the latency at a given count is
    0.8 % above the least in the mean.
    """
    cases, same, excess = 60, 0, list[float]()
    for seed in range(cases):
        search, share = random_case(seed, workflow, profile, platform)
        stage = search.numbers(search.workflow.stages[0])
        found, least = reached(search), dict[int, float]()
        for count in found:
            sizes = initial_sizes(count, search.predictor.platform, search.mechanism)
            least[count] = min(search.stage_ms(p, sizes) for p in partitions(stage, count))
            assert found[count] >= least[count] - 1e-9
            excess.append(found[count] / least[count] - 1)
        slo_ms = min(least.values()) + share * (least[1] - min(least.values())) + 1e-9
        fewest = min(count for count, ms in least.items() if ms <= slo_ms)
        same += fewest == min((c for c, ms in found.items() if ms <= slo_ms), default=None)
    assert same >= 0.9 * cases
    assert sum(excess) / len(excess) < 0.01

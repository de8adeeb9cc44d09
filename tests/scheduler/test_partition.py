"""Partitions are close to the best there are, and bounds are never above them."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.conflict_rules import find_conflicts
from chiron.scheduler.fill import fill
from chiron.scheduler.partition import Costs, Partition, partition
from chiron.scheduler.problem import Problem
from chiron.scheduler.shapes import Shape, bounds_ms, slots_of
from chiron.scheduler.slots import Slots, water_level_ms
from chiron.workflow.constraints import NO_CONSTRAINTS
from tests.examples import FEWER

periods = st.tuples(st.sampled_from(["cpu", "cpu", "block", "native"]), st.integers(0, 20))
texts = st.lists(periods, min_size=1, max_size=3).map(
    lambda listed: " ".join(f"{kind} {duration}" for kind, duration in listed)
)
profiles = st.fixed_dictionaries(dict.fromkeys("abcd", texts))
stages = st.lists(st.sampled_from("abcd"), min_size=1, max_size=6).map(" ".join)


@pytest.fixture(scope="session")
def problem(workflow, profile, platform):
    """A problem with one stage: ``problem("a b", dict(a="cpu 1", b="block 2"), "fork")``."""

    def problem(stage, functions, mechanism="fork", **constants):
        known, measured = workflow(stage), profile(**functions)
        conflicts = find_conflicts(known.functions, measured, NO_CONSTRAINTS, {})
        return Problem.of(known, measured, platform(**constants), mechanism, conflicts)

    return problem


def stage_of(problem: Problem) -> tuple[int, ...]:
    return problem.numbers(problem.workflow.stages[0], 0)


def one_wrap(problem: Problem, count: int) -> Slots:
    return slots_of(problem, Shape(((count,),)), 0, count)


def partitions(functions: tuple[int, ...], count: int) -> Iterator[Partition]:
    """Every way to put `functions` into `count` processes, none of them empty."""

    def extended(rest: tuple[int, ...], contents: tuple[tuple[int, ...], ...]):
        if len(contents) + len(rest) < count:
            return
        if not rest:
            yield contents
            return
        for i, content in enumerate(contents):
            yield from extended(rest[1:], (*contents[:i], (*content, rest[0]), *contents[i + 1 :]))
        if len(contents) < count:
            yield from extended(rest[1:], (*contents, (rest[0],)))

    yield from extended(functions, ())


@FEWER
@given(profiles, stages, st.lists(st.sampled_from("abcd"), max_size=2), st.integers(0, 3))
def test_a_greedy_partition_breaks_no_conflict_as_long_as_there_are_enough_processes(
    workflow, profile, platform, functions, stage, unshareable, more
):
    known, measured = workflow(stage), profile(**functions)
    calls = {"unshareable": ("os.chdir",)}
    told = {
        n: f.model_copy(update=calls if n in unshareable else {})
        for n, f in measured.functions.items()
    }
    measured = measured.model_copy(update={"functions": told})
    conflicts = find_conflicts(known.functions, measured, NO_CONSTRAINTS, {})
    problem = Problem.of(known, measured, platform(), "fork", conflicts)
    numbers = stage_of(problem)
    count = min(len(numbers), len(problem.separated(numbers)) + more)
    latency_ms, contents = fill(problem, numbers, [2.0 * place for place in range(count)])
    assert latency_ms < math.inf
    assert all(contents) and all(map(problem.can_share, contents))
    assert sorted(n for content in contents for n in content) == sorted(numbers)


def random_problem(seed: int, problem) -> tuple[Problem, float]:
    """A stage of 2 to 6 random functions; how far the SLO is from the best to one process."""
    r = random.Random(seed)
    names = "abcdef"[: r.randint(2, 6)]
    texts = {
        name: " ".join(
            f"{r.choice(['cpu', 'block', 'native'])} {r.randint(1, 20)}"
            for _ in range(r.randint(1, 3))
        )
        for name in names
    }
    constants = {
        "rpc_ms": r.choice([5.0, 8.0, 20.0]),
        "process_startup_ms": r.choice([1.0, 3.0]),
        "process_block_ms": r.choice([0.5, 1.0, 4.0]),
    }
    return problem(" ".join(names), texts, r.choice(["fork", "pool"]), **constants), r.random()


def test_tiny_stages_get_by_with_as_few_processes_as_any_partition(problem):
    cases, same, excess = 60, 0, list[float]()
    for seed in range(cases):
        tiny, share = random_problem(seed, problem)
        functions, found, least = stage_of(tiny), dict[int, float](), dict[int, float]()
        for count in range(1, len(functions) + 1):
            slots = one_wrap(tiny, count)
            found[count], _ = partition(tiny, functions, slots)
            joint = Costs(tiny, slots, together=True)
            every = partitions(functions, count)
            least[count] = min(joint.latency_ms(joint.arranged(p)) for p in every)
            assert found[count] >= least[count] - 1e-6
            excess.append(found[count] / least[count] - 1)
        slo_ms = min(least.values()) + share * (least[1] - min(least.values())) + 1e-6
        fewest = min(count for count, ms in least.items() if ms <= slo_ms)
        same += fewest == min((c for c, ms in found.items() if ms <= slo_ms), default=None)
    assert same >= 0.98 * cases
    assert sum(excess) / len(excess) < 0.002


@FEWER
@given(stages, profiles, st.sampled_from(["fork", "pool"]), st.data())
def test_no_partition_is_faster_than_the_bound(problem, stage, functions, mechanism, data):
    known = problem(stage, functions, mechanism)
    numbers = stage_of(known)
    slots = one_wrap(known, data.draw(st.integers(1, len(numbers))))
    latency_ms, found = partition(known, numbers, slots)
    assert bounds_ms(known, numbers, [slots])[0] <= latency_ms + 1e-6
    assert sorted(n for process in found for n in process) == list(numbers)
    assert all(found)


@FEWER
@given(stages, profiles, st.sampled_from(["fork", "pool"]), st.data())
def test_processes_with_a_core_each_that_only_use_the_gil_can_be_simulated_apart(
    problem, stage, functions, mechanism, data
):
    only_gil = {name: text.replace("native", "cpu") for name, text in functions.items()}
    known = problem(stage, only_gil, mechanism, ipc_ms=0.3)
    numbers = stage_of(known)
    slots = one_wrap(known, data.draw(st.integers(1, len(numbers))))
    _, contents = fill(known, numbers, slots.offsets_ms)
    apart, together = (Costs(known, slots, together=t).ends_ms(contents) for t in (False, True))
    assert apart == pytest.approx(together, abs=1e-5)


def test_what_computes_at_once_uses_the_core_that_another_process_leaves(problem):
    known = problem("a b", {"a": "native*2 10", "b": "cpu 2"}, "pool")
    latency_ms, found = partition(known, stage_of(known), one_wrap(known, 2))
    assert sorted(map(len, found)) == [1, 1]
    assert latency_ms == pytest.approx((20 + 2) / 2, abs=0.6)  # not 20, as on a core of its own


@pytest.mark.parametrize(("mechanism", "ends_ms"), [("fork", [11.1, 19.2]), ("pool", [10.3, 10.4])])
def test_what_runs_in_a_forked_process_takes_longer_there(problem, mechanism, ends_ms):
    """The main process waits 1 ms for the fork, which is ready after 3 and takes 16, not 10."""
    known = problem("a a", {"a": "cpu 10 forked 16"}, mechanism)
    costs = Costs(known, one_wrap(known, 2), together=False)
    assert costs.ends_ms(((0,), (0,))) == pytest.approx(ends_ms, abs=0.11)
    joint = Costs(known, one_wrap(known, 2), together=True)
    assert joint.ends_ms(((0,), (0,))) == pytest.approx(costs.ends_ms(((0,), (0,))))


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
def test_threads_beside_threads_take_longer_where_cores_are_wasted(problem, mechanism):
    stage, functions = "a b c d", dict.fromkeys("abcd", "cpu 20")
    latencies = []
    for wasted in (0.0, 0.5):
        known = problem(stage, functions, mechanism, contention_overhead=wasted)
        slots = one_wrap(known, 2)
        latency_ms, found = partition(known, stage_of(known), slots)
        assert latency_ms == Costs(known, slots, together=True).latency_ms(found)
        latencies.append(latency_ms)
    perfect_ms, wasted_ms = latencies
    assert perfect_ms * 1.2 < wasted_ms < perfect_ms * 1.5


@given(st.lists(st.floats(0, 100), min_size=1, max_size=8), st.floats(0, 1000))
def test_the_water_level_is_where_all_is_done(offsets, total):
    level = water_level_ms(total, offsets)
    assert level >= min(offsets)
    assert sum(max(0.0, level - o) for o in offsets) == pytest.approx(total, abs=1e-6)


def test_each_function_goes_where_it_would_end_first_and_no_process_stays_empty(problem):
    known = problem("a a b", {"a": "cpu 10", "b": "block 1"})
    latency_ms, contents = fill(known, (0, 0, 1), (0.0, 15.0, 30.0))
    assert contents == ((0,), (0,), (1,))
    assert latency_ms == 31.1, "the start of a thread takes 0.1 ms"


@pytest.mark.parametrize("mechanism", ["fork", "pool"])
def test_more_processes_with_a_cpu_each_make_a_stage_of_computing_functions_faster(
    problem, mechanism
):
    known = problem("a a a a a a", {"a": "cpu 50"}, mechanism)
    functions = stage_of(known)
    latencies = [partition(known, functions, one_wrap(known, n))[0] for n in (1, 2, 3, 6)]
    assert all(fewer > more for fewer, more in pairwise(latencies))


def test_waiting_functions_share_a_process_with_computing_ones(problem):
    """Two of 20 ms on the GIL cannot share 30 ms; one can with those that only wait."""
    known = problem("work work rest rest", {"work": "cpu 20", "rest": "block 20"})
    latency_ms, found = partition(known, stage_of(known), one_wrap(known, 2))
    work = known.number_of["work"]
    assert [process.count(work) for process in found] == [1, 1]
    assert latency_ms < 30


def test_there_are_no_more_slots_than_functions(problem):
    known = problem("a", {"a": "cpu 1"})
    with pytest.raises(ValueError, match="more slots"):
        partition(known, (0,), one_wrap(known, 2))

"""A plan under load: queueing theory's formulas, and what holds for any plan."""

from __future__ import annotations

import math
from itertools import pairwise
from random import Random
from statistics import fmean

import pytest

from chiron.predictor.load import Case, Crowd
from chiron.predictor.predict import Predictor, predict
from chiron.predictor.spread import Spread, evenly, percentile_ms
from chiron.predictor.unrolling import run_of
from chiron.scheduler.concurrency import keeping_busy
from chiron.workflow.load import Load
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap
from tests.rows import each_row


def workflow(*stages: str) -> Workflow:
    """Stages of functions, each of which needs all of the stage before."""
    tasks, before = [], ()
    for stage in stages:
        names = tuple(stage.split())
        source = before[0] if len(before) == 1 else before or None
        tasks += [Task(name, name, source) for name in names]
        before = names
    return Workflow("demo", tuple(tasks), before[0] if len(before) == 1 else before)


def plan(*wraps: tuple[tuple[str, ...], ...], cpus: int = 1, mechanism: str = "fork") -> Plan:
    made = tuple(
        Wrap(name=f"w{n}", cpus=cpus, memory_mib=128, mechanism=mechanism, processes=processes)
        for n, processes in enumerate(wraps)
    )
    return Plan(format=2, workflow="demo", planner="pgp", wraps=made, cpus=cpus * len(made))


def crowd(planned, flow, functions, place, replicas=1, limit=1):
    """The replicas of a plan, whose functions do as their profile says."""
    case = Case(
        run_of(flow, functions),
        1.0,
        Predictor(functions, place),
        Spread.of(flow, functions, place),
    )
    return Crowd(planned, [case], {w.name: replicas for w in planned.wraps}, limit)


def varied(functions, **quantiles):
    """A profile whose functions vary so."""
    known = dict(functions.functions)
    for name, each in quantiles.items():
        known[name] = known[name].model_copy(update={"variation": tuple(each)})
    return functions.model_copy(update={"functions": known})


EXPONENTIAL = evenly([-math.log(1 - (n + 0.5) / 20_000) for n in range(20_000)], 200)


def erlang_wait(servers: int, offered: float) -> float:
    """Erlang's C: how likely a request has to wait."""
    waiting = offered**servers / math.factorial(servers) * servers / (servers - offered)
    return waiting / (sum(offered**n / math.factorial(n) for n in range(servers)) + waiting)


@pytest.mark.each_once
@pytest.mark.parametrize("servers", [1, 4])
@pytest.mark.parametrize("busy", [0.3, 0.7])
def test_one_task_of_exponential_length_waits_as_erlang_has_it(servers, busy, platform, profile):
    """M/M/c: as many requests at once as cores, the others wait in one queue.

    The lengths are 200 quantiles, of a smaller second moment: by Kingman's formula waits are so
    much shorter.
    """
    functions = varied(profile(f="cpu 10"), f=EXPONENTIAL)
    mean, second = fmean(EXPONENTIAL), fmean(each * each for each in EXPONENTIAL)
    # Threads of one process would share its GIL; native code computes beside.
    native = functions.functions["f"].periods[0].model_copy(update={"kind": "native"})
    known = functions.functions["f"].model_copy(update={"periods": (native,)})
    functions = functions.model_copy(update={"functions": {"f": known}})
    made = crowd(plan((("f",),), cpus=servers), workflow("f"), functions, platform(), limit=servers)
    per_s = 1000 * busy * servers / (10 * mean)
    seen = made.under(Load(per_s=per_s, requests=60_000))
    waits_ms = erlang_wait(servers, busy * servers) * 10 * mean / (servers * (1 - busy))
    expected_ms = waits_ms * second / (2 * mean * mean)
    assert fmean(seen.loaded_ms) - fmean(seen.alone_ms) == pytest.approx(expected_ms, rel=0.08)


def test_executions_that_share_a_core_take_what_processor_sharing_says(platform, profile):
    """M/G/1-PS: the mean is that of M/M/1, whatever the lengths are."""
    made = crowd(plan((("f",),)), workflow("f"), profile(f="native 10"), platform(), limit=200)
    seen = made.under(Load(per_s=60, requests=60_000))
    assert fmean(seen.loaded_ms) == pytest.approx(10 / (1 - 0.6), rel=0.05)


def test_two_processes_of_one_core_saturate_it(platform, profile):
    """Forks, threads and functions compute; the second process waits besides."""
    place = platform(process_startup_ms=3.0, process_compute_ms=3.0, thread_startup_ms=0.5)
    functions = profile(f="cpu 10 block 5", g="cpu 6")
    made = crowd(plan((("f",), ("g",))), workflow("f g"), functions, place, limit=8)
    cpu_ms = 10 + 6 + 3 + 2 * 0.5
    seen = made.under(Load(clients=8, requests=2000))
    assert seen.cpu_ms == pytest.approx(cpu_ms, rel=1e-3)
    assert made.per_s == pytest.approx(1000 / cpu_ms, rel=0.01)


@pytest.mark.each_once
@pytest.mark.parametrize("replicas", [1, 3])
@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize("cpus", [1, 2])
def test_saturation_is_cores_over_cpu_time_where_nothing_else_limits(
    cpus, mechanism, replicas, platform, profile
):
    functions = profile(f="native 4", g="block 3 native 7")
    planned = plan((("f",), ("g",)), cpus=cpus, mechanism=mechanism)
    made = crowd(planned, workflow("f g"), functions, platform(), replicas, limit=16)
    assert made.per_s == pytest.approx(1000 * replicas * cpus / 11, rel=0.02)


def test_a_gil_is_a_limit_that_more_cores_do_not_lift(platform, profile):
    made = crowd(plan((("f",),), cpus=4), workflow("f"), profile(f="cpu 10"), platform(), limit=16)
    assert made.per_s == pytest.approx(100, rel=0.01)


def test_requests_at_once_are_a_limit_where_functions_wait(platform, profile):
    made = crowd(plan((("f",),)), workflow("f"), profile(f="block 50"), platform(), 2, limit=4)
    assert made.per_s == pytest.approx(2 * 4 * 1000 / 50, rel=0.01)


def test_the_cores_of_a_node_are_shared_by_replicas_and_the_requests_way(platform, profile):
    place = platform(cpus=2, one_node=True, request_ms=2.0)
    made = crowd(plan((("f",),)), workflow("f"), profile(f="native 8"), place, 4, limit=8)
    assert made.per_s == pytest.approx(2 * 1000 / 10, rel=0.02)


def random_case(number, profile, platform):
    """A random plan of a random workflow; on cores of its own, or on a node's."""
    random = Random(number)
    names = [f"f{n}" for n in range(random.randint(1, 7))]
    kinds = ["cpu", "native", "block"]
    functions = profile(
        **{
            name: " ".join(
                f"{random.choice(kinds)} {random.randint(1, 12)}"
                for _ in range(random.randint(1, 3))
            )
            for name in names
        }
    )
    cuts = sorted(random.sample(range(1, len(names)), random.randint(0, min(2, len(names) - 1))))
    stages = [" ".join(names[a:b]) for a, b in pairwise([0, *cuts, len(names)])]
    wraps: list[list[list[str]]] = [[[names[0]]]]
    for name in names[1:]:
        place = random.random()
        if place < 0.4:
            random.choice(random.choice(wraps)).append(name)
        elif place < 0.8:
            random.choice(wraps).append([name])
        else:
            wraps.append([[name]])
    place = platform(
        cpus=random.choice([2, 64]),
        one_node=random.random() < 0.5,
        rpc_ms=4.0,
        invoke_ms=0.7,
        request_ms=2.0,
        process_startup_ms=3.0,
        process_compute_ms=random.choice([0.0, 2.0]),
        process_block_ms=1.0,
        pool_dispatch_ms=0.4,
        ipc_ms=0.3,
        thread_startup_ms=0.2,
        contention_overhead=0.1,
        stage_ms=0.2,
    )
    processes = [tuple(map(tuple, wrap)) for wrap in wraps]
    planned = plan(*processes, cpus=random.randint(1, 2), mechanism=random.choice(["fork", "pool"]))
    return planned, workflow(*stages), functions, place


RANDOM = range(40)


@each_row("number", RANDOM)
def test_requests_that_meet_no_others_take_what_is_predicted_for_one(number, profile, platform):
    planned, flow, functions, place = random_case(number, profile, platform)
    made = crowd(planned, flow, functions, place, limit=4)
    seen = made.under(Load(per_s=1e-3, requests=100))
    assert max(seen.loaded_ms) == pytest.approx(min(seen.loaded_ms), abs=1e-6)
    predicted = predict(planned, flow, functions, place)
    assert made.alone_ms(95) + seen.added_ms(95) == pytest.approx(predicted.judged_ms, abs=1e-3)
    if not (place.one_node and planned.cpus == place.cpus):
        assert seen.loaded_ms[0] == pytest.approx(predicted.latency_ms, abs=1e-3)


@each_row("number", RANDOM[::8])
def test_load_only_makes_slower_and_replicas_only_faster(number, profile, platform):
    """Of replicas with cores of their own; of means, up to a little noise."""
    planned, flow, functions, place = random_case(number, profile, platform)
    place = place.model_copy(update={"one_node": False})
    one = crowd(planned, flow, functions, place, 1, limit=4)
    two = crowd(planned, flow, functions, place, 2, limit=4)
    assert two.per_s == pytest.approx(2 * one.per_s, rel=0.05)
    loads = [Load(per_s=share * one.per_s, requests=3000) for share in (0.1, 0.5, 0.9)]
    slow, fast = ([fmean(made.under(load).loaded_ms) for load in loads] for made in (one, two))
    assert slow == sorted(slow)
    assert all(more >= 0.99 * less for less, more in zip(fast, slow, strict=True))


def test_payloads_are_drawn_by_weight_and_meet_in_one_queue(platform, profile):
    """Requests that take 5 ms wait for those that take 50: Pollaczek and Khinchine's formula."""
    small, large = profile(f="cpu 5"), profile(f="cpu 50")
    flow, place = workflow("f"), platform()
    cases = [
        Case(run_of(flow, its), weight, Predictor(its, place), Spread.of(flow, its, place))
        for its, weight in ((small, 0.9), (large, 0.1))
    ]
    made = Crowd(plan((("f",),)), cases, {"w0": 1}, 1)
    mean, second = 0.9 * 5 + 0.1 * 50, 0.9 * 25 + 0.1 * 2500
    per_ms = 0.6 / mean
    seen = made.under(Load(per_s=1000 * per_ms, requests=60_000))
    waits_ms = per_ms * second / (2 * (1 - per_ms * mean))
    assert fmean(seen.loaded_ms) - fmean(seen.alone_ms) == pytest.approx(waits_ms, rel=0.08)


def test_equal_seeds_give_equal_figures_and_others_do_not(platform, profile):
    made = crowd(plan((("f",),)), workflow("f"), profile(f="cpu 10"), platform())
    one, again, other = (made.under(Load(per_s=50, seed=seed)) for seed in (1, 1, 2))
    assert one == again
    assert one.loaded_ms != other.loaded_ms
    p95 = [percentile_ms([(1.0, each.loaded_ms)], 95) for each in (one, other)]
    assert p95[0] == pytest.approx(p95[1], rel=0.1)


@pytest.mark.parametrize("waits", [2, 6])
def test_as_many_requests_at_once_as_keep_the_cpus_busy_do_what_more_do(waits, profile, platform):
    """Times that vary: as many as Little's law wants, which assumes none does, do clearly less."""
    functions = varied(profile(a=f"cpu 10 block {10 * waits}"), a=EXPONENTIAL)
    planned, flow = plan((("a",),)), workflow("a")

    def saturation(limit):
        return crowd(planned, flow, functions, platform(), limit=limit).per_s

    most = saturation(20 * waits)
    assert saturation(keeping_busy(waits)) > 0.96 * most
    assert saturation(1 + waits) < 0.96 * most

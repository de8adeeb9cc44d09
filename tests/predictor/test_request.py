"""A whole request: as the engines in virtual time have it, and as the paper's equations do."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from by_engines import request_ms
from hypothesis import assume, given
from hypothesis import strategies as st
from oracle import Process, simulate
from test_kernel import close

from chiron.evaluation.prediction.baselines.features import parts_of
from chiron.predictor.equations import call_ms
from chiron.predictor.explain import explain
from chiron.predictor.mechanisms import mechanism_of
from chiron.predictor.plan_timeline import plan_timeline
from chiron.predictor.predict import Predictor
from chiron.predictor.simulator import Interpreter, Span
from chiron.predictor.wiring import wired
from chiron.workflow.model import NOTHING, Stream, Task, Workflow
from chiron.workflow.plan import Plan, Processes, Wrap
from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import FunctionProfile, Period, Profile
from chiron.wrap.core.triggers import buckets, groups

#: An endless simulation would hang again in every attempt of hypothesis to shrink it.
pytestmark = pytest.mark.timeout(600, method="thread")

times = st.just(0.0) | st.integers(1, 12).map(float) | st.floats(0, 30).map(lambda t: round(t, 3))
parts = st.sampled_from([0.0, 0.25, 1.0])
MECHANISMS = st.sampled_from(["fork", "pool"])
#: The constants that Chiron's equations have, and those which fit into them.
PAPER = ["ipc_ms", "pool_dispatch_ms", "thread_startup_ms", "switch_cost_ms"]
CALLS = {"rpc_ms": 1.0, "invoke_ms": 0.0, "process_startup_ms": 0.0, "process_block_ms": 0.0}
FITTING = ["request_ms", "stage_ms", "send_ms", "process_gather_ms"]


@st.composite
def functions(
    draw: st.DrawFn, kinds: Sequence[str] = ("cpu", "native", "block")
) -> FunctionProfile:
    start, periods = 0.0, []
    for kind in draw(st.lists(st.sampled_from(kinds), max_size=4)):
        periods.append(Period(kind=kind, start_ms=start, duration_ms=draw(times)))
        start += periods[-1].duration_ms
    forked_ms = draw(st.none() | times.map(lambda more: start + more))
    sizes = st.sampled_from([0, 1000, 20_000_000])
    return FunctionProfile(
        latency_ms=start,
        periods=tuple(periods),
        forked_ms=forked_ms,
        input_bytes=draw(st.none() | sizes),
        output_bytes=draw(sizes),
        writes_from=draw(st.none() | parts),
        reads_from=draw(st.none() | parts),
        reads_until=draw(st.none() | parts),
    )


profiles = st.fixed_dictionaries({name: functions() for name in "fgh"}).map(
    lambda known: Profile(format=1, workflow="demo", functions=known)
)


@st.composite
def workflows(draw: st.DrawFn, *, streams: bool = True) -> Workflow:
    tasks = list[Task]()
    for name in "abcdefgh"[: draw(st.integers(1, 8))]:
        known = [task.name for task in tasks]
        sources = draw(st.lists(st.sampled_from(known), unique=True, max_size=3)) if known else []
        read = draw(st.sets(st.sampled_from(sources))) if sources and streams else {}
        given = tuple(each for each in sources if each not in read)
        its = tuple(Stream(each, each) for each in sources if each in read)
        source = given or (NOTHING if its else None)
        tasks.append(Task(name, draw(st.sampled_from("fgh")), source, its))
    output = draw(st.none() | st.sampled_from([task.name for task in tasks]))
    return Workflow("demo", tuple(tasks), output)


@st.composite
def known_paths(draw: st.DrawFn) -> dict[Any, PathCost]:
    """What each path costs; none of what any does, or all but direct connections."""
    left_out = draw(st.sampled_from([(), ("direct",), ("direct", "gateway", "store")]))
    per_mb = st.just(0.0) | st.floats(0, 2).map(lambda t: round(t, 3))
    return {
        path: PathCost(ms=draw(times), ms_per_mb=draw(per_mb))
        for path in ("direct", "gateway", "store")
        if path not in left_out
    }


@st.composite
def plans(draw: st.DrawFn, workflow: Workflow, *, one_stage: bool, **fields: Any) -> Plan:
    """A plan at random; with `one_stage` further processes hold tasks of one stage each.

    What a client calls has no further processes.
    """
    most = 0 if fields.get("orchestrator") == "client" else 2
    wraps = defaultdict[int, dict[Any, list[str]]](lambda: {0: []})
    for number, stage in enumerate(workflow.stages):
        for task in stage:
            process = draw(st.integers(0, most))
            place = (number, process) if process and one_stage else process
            wraps[draw(st.integers(0, 2))].setdefault(place, []).append(task)
    made = tuple(
        Wrap(
            name=f"w{index}",
            cpus=draw(st.integers(1, 3)),
            memory_mib=1,
            mechanism=draw(MECHANISMS),
            processes=tuple(map(tuple, processes.values())),
        )
        for index, processes in wraps.items()
    )
    cpus = sum(wrap.cpus for wrap in made)
    known = {"format": 2, "workflow": "demo", "planner": "pgp"}
    return Plan(**known, wraps=made, cpus=cpus, **fields)


def interpreter_of(platform: Platform) -> Interpreter:
    return Interpreter(
        platform.switch_interval_ms,
        platform.switch_cost_ms,
        platform.thread_startup_ms,
        platform.thread_ready_ms,
    )


@given(st.data(), workflows(), profiles)
def test_the_kernel_answers_as_the_engines_do_in_virtual_time(data, workflow, profile):
    constants = {
        name: data.draw(times)
        for name in Platform.model_fields
        if name.endswith("_ms") and name not in ("switch_interval_ms", "process_compute_ms")
    }
    platform = Platform(
        format=1,
        name="test",
        cpus=data.draw(st.integers(1, 4)),
        one_node=data.draw(st.booleans()),
        process_compute_ms=constants["process_startup_ms"]
        * data.draw(st.sampled_from([0, 0.5, 1])),
        contention_overhead=data.draw(st.sampled_from([0.0, 0.25])),
        shared_ms_per_mb=data.draw(st.sampled_from([0.0, 0.5])),
        joined_ms_per_mb=data.draw(st.sampled_from([0.0, 0.5])),
        body_ms_per_mb=data.draw(st.sampled_from([0.0, 1.5])),
        paths=data.draw(known_paths()),
        **constants
        | {name: data.draw(st.none() | times) for name in ("thread_ready_ms", "main_wait_ms")},
    )
    made = data.draw(
        plans(
            workflow,
            one_stage=False,
            trigger=data.draw(st.sampled_from(["stage", "data"])),
            orchestrator=data.draw(st.sampled_from(["wrap", "wrap", "client"])),
            path=data.draw(st.sampled_from(["auto", "auto", "gateway", "store"])),
        )
    )
    workflow = replace(workflow, decided=data.draw(st.integers(0, 4)) == 0)
    expected = list[Span]()
    answer_ms = request_ms(made, workflow, profile, platform, expected.append)
    predictor = Predictor(profile, platform)
    timeline, steps = plan_timeline(made, workflow, predictor)
    explained_ms = timeline.arrived_ms + sum(e.latency_ms for e in explain(timeline, steps))
    assert explained_ms == pytest.approx(answer_ms, rel=1e-6, abs=1e-3)
    assert predictor.plan_ms(made, workflow) == pytest.approx(answer_ms, rel=1e-6, abs=1e-5)
    spans = close(predictor.recorded(made, workflow)[-1])
    assert len(spans) == len(close(expected))
    for one, other in zip(spans, close(expected), strict=True):
        assert one[:3] == other[:3]
        assert one[3:] == pytest.approx(other[3:], rel=1e-6, abs=3e-5)


def test_an_instance_that_costs_nothing_is_no_instant_with_the_gil():
    """Else the second thread would wait for the GIL by then, and the first would keep it."""
    brief = FunctionProfile(
        latency_ms=1.0, periods=(Period(kind="block", start_ms=0.0, duration_ms=1.0),)
    )
    profile = Profile(format=1, workflow="demo", functions={"f": brief})
    workflow = Workflow("demo", (Task("a", "f", None), Task("b", "f", None)), None, decided=True)
    wrap = Wrap(name="w", cpus=1, memory_mib=1, mechanism="fork", processes=(("a", "b"),))
    made = Plan(format=2, workflow="demo", planner="pgp", cpus=1, wraps=(wrap,))
    constants = dict.fromkeys(PAPER, 0.0) | CALLS | {"instance_ms": 0.0, "short_release_ms": 2.0}
    platform = Platform(format=1, name="test", cpus=1, **constants)
    assert request_ms(made, workflow, profile, platform) == 1.0
    assert Predictor(profile, platform).plan_ms(made, workflow) == 1.0


def by_equations_ms(plan: Plan, workflow: Workflow, profile: Profile, platform: Platform) -> float:
    """Equations (1) to (4): every wrap of every stage by itself, stages one after another."""
    total_ms = platform.request_ms + platform.stage_ms * (len(workflow.stages) - 1)
    for stage in workflow.stages:
        parts = parts_of(plan, stage)
        home = parts[0][0] == 0
        total_ms += max(
            _called_ms(place, len(parts), home, platform)
            + _wrap_ms(plan.wraps[index], processes, workflow, profile, platform)
            for place, (index, processes) in enumerate(parts)
        )
    return total_ms


def _called_ms(place: int, wraps: int, home: bool, platform: Platform) -> float:
    """Equation (2): the home begins when it has called the others, the k-th of which wait."""
    return (wraps - 1) * platform.send_ms if home and place == 0 else call_ms(place, platform)


def _wrap_ms(
    wrap: Wrap, processes: Processes, workflow: Workflow, profile: Profile, platform: Platform
) -> float:
    """Equations (3) and (4)."""
    mechanism = mechanism_of(wrap.mechanism)
    costs, given = mechanism.costs(platform), []
    for number, delay_ms in enumerate(costs.delays_ms(len(processes))):
        works = []
        for task in processes[number]:
            function = profile.functions[workflow.function_of(task)]
            more_ms = function.further_ms if number and not mechanism.lasting else 0.0
            first = (("cpu", more_ms),) if more_ms else ()
            works.append((*first, *((p.kind, p.duration_ms) for p in function.periods)))
        given.append(Process(delay_ms, tuple(works)))
    ends = simulate(given, min(wrap.cpus, platform.cpus), interpreter_of(platform))
    return max(ends) + costs.gathering_ms(len(processes))


@given(st.data(), workflows(), profiles)
def test_stages_in_processes_of_their_own_take_what_the_equations_say(data, workflow, profile):
    """Where nothing is begun before what was begun earlier: T_RPC >= T_INV, T_Startup >= T_Block.

    And where no other wrap goes on by itself from stage to stage: that saves a call, of which the
    paper has one for every stage.
    """
    constants = {name: data.draw(times) for name in (*PAPER, *FITTING)}
    invoke_ms, block_ms, first_ms = (data.draw(times) for _ in range(3))
    platform = Platform(
        format=1,
        name="test",
        cpus=data.draw(st.integers(1, 4)),
        invoke_ms=invoke_ms,
        rpc_ms=invoke_ms + data.draw(times),
        process_block_ms=block_ms,
        process_first_block_ms=first_ms,
        process_startup_ms=block_ms + first_ms + data.draw(times),
        thread_ready_ms=data.draw(st.none() | times),
        main_wait_ms=data.draw(st.none() | times),
        **constants,
    )
    made = data.draw(plans(workflow, one_stage=True, trigger="stage"))
    place = {t: w for w, wrap in enumerate(made.wraps) for t in wrap.tasks}
    all_buckets = buckets(dict.fromkeys(place, ()), workflow.stages, "stage")
    found = groups(all_buckets, place)
    for index, bucket in enumerate(all_buckets):
        assume(all(place[task] == 0 or found[task].bucket == index for task in bucket.starts))
    expected = by_equations_ms(made, workflow, profile, platform)
    assert Predictor(profile, platform).plan_ms(made, workflow) == pytest.approx(
        expected, rel=1e-9, abs=1e-5
    )


def apart(workflow: Workflow, **fields: Any) -> tuple[Plan, Plan]:
    """Every task in a process with a core of its own: of one wrap, and of wraps of their own."""
    tasks = [task.name for task in workflow.tasks]
    fork = {"memory_mib": 1, "mechanism": "fork"}
    processes = tuple((task,) for task in tasks)
    one = Wrap(name="one", cpus=len(tasks), processes=processes, **fork)
    each = tuple(Wrap(name=f"w-{task}", cpus=1, processes=((task,),), **fork) for task in tasks)
    known = {"format": 2, "workflow": "demo", "planner": "pgp", "cpus": len(tasks), **fields}
    return Plan(**known, wraps=(one,)), Plan(**known, wraps=each, orchestrator="client")


@given(st.data(), workflows(streams=False), profiles)
def test_data_is_never_slower_than_stages_where_nothing_is_shared(data, workflow, profile):
    """No core, no process, and no turn to be forked or called, for which others would come first.

    Else it may be: what begins earlier keeps others from beginning (Graham 1969). So it may with
    streams that are read while they are written, whose ends are connected and wait for each other.
    """
    names = (*PAPER, "request_ms", "stage_ms", "rpc_ms", "process_startup_ms", "main_wait_ms")
    platform = Platform(
        format=1,
        name="test",
        cpus=len(workflow.tasks),
        invoke_ms=0.0,
        process_block_ms=0.0,
        thread_ready_ms=data.draw(st.none() | times),
        **{name: data.draw(times) for name in names},
    )
    predictor = Predictor(profile, platform)
    for by_data, by_stage in zip(
        apart(workflow, trigger="data"), apart(workflow, trigger="stage"), strict=True
    ):
        stage_ms = predictor.plan_ms(by_stage, workflow)
        assert predictor.plan_ms(by_data, workflow) <= stage_ms + 1e-5


@pytest.mark.each_once
@pytest.mark.parametrize("trigger", ["stage", "data"])
@pytest.mark.parametrize("orchestrator", ["wrap", "client"])
def test_many_tasks_after_as_many_take_memory_for_each_and_no_more(trigger, orchestrator):
    """Each needs all that come before: that is 160 000 edges."""
    first = tuple(f"a{number}" for number in range(400))
    second = [Task(f"b{number}", "f", first) for number in range(400)]
    workflow = Workflow("demo", (*(Task(name, "f", None) for name in first), *second), None)
    _, made = apart(workflow, trigger=trigger)
    made = made.model_copy(update={"orchestrator": orchestrator})
    known = FunctionProfile(
        latency_ms=1.0, periods=(Period(kind="cpu", start_ms=0.0, duration_ms=1.0),)
    )
    profile = Profile(format=1, workflow="demo", functions={"f": known})
    platform = Platform(format=1, name="test", cpus=1, **dict.fromkeys(PAPER, 0.0), **CALLS)
    execution = wired(made, workflow, profile, platform).execution
    links = sum(len(n.awaits) + len(n.starts) + len(n.calls) + len(n.then) for n in execution.nodes)
    assert len(execution.nodes) + links < 8_000
    assert Predictor(profile, platform).plan_ms(made, workflow) == pytest.approx(4.0)

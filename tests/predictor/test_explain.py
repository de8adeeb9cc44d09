"""A plan's timeline adds up to its prediction: when, why, and drawn."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.predictor.explain import Parts, explain
from chiron.predictor.plan_timeline import plan_timeline
from chiron.predictor.predict import Predictor
from chiron.workflow.chrome_trace import chrome_trace
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import Platform
from chiron.workflow.profile import FunctionProfile, Period, Profile

#: a, b and c in parallel, then d.
WORKFLOW = Workflow(
    "demo", (*(Task(t, t, None) for t in "abc"), Task("d", "d", ("a", "b", "c"))), "d"
)
KINDS = st.sampled_from(["cpu", "native", "block"])
times = st.integers(0, 20).map(float) | st.floats(0.0, 20.0).map(lambda time: round(time, 3))
#: Per wrap: its CPUs, and its processes.
SHAPES = [
    [(1, ["abcd"])],
    [(2, ["ad", "bc"])],
    [(2, ["", "ad", "b", "c"])],
    [(1, ["abd"]), (2, ["c"])],
    [(1, ["a"]), (2, ["bd", "c"])],
]
APART = [(1, ["a"]), (1, ["b"]), (1, ["c"]), (1, ["d"])]


def plan(shape, mechanism: str, **fields: Any) -> Plan:
    wraps = tuple(
        Wrap(
            name=f"w{number}",
            cpus=cpus,
            memory_mib=1,
            mechanism=mechanism,
            processes=tuple(map(tuple, processes)),
        )
        for number, (cpus, processes) in enumerate(shape, start=1)
    )
    cpus = sum(wrap.cpus for wrap in wraps)
    return Plan(format=2, workflow="demo", planner="pgp", wraps=wraps, cpus=cpus, **fields)


@st.composite
def functions(draw: st.DrawFn) -> FunctionProfile:
    start, periods = 0.0, []
    for kind in draw(st.lists(KINDS, max_size=4)):
        periods.append(Period(kind=kind, start_ms=start, duration_ms=draw(times)))
        start += periods[-1].duration_ms
    return FunctionProfile(latency_ms=start, periods=tuple(periods))


profiles = st.fixed_dictionaries({name: functions() for name in "abcd"}).map(
    lambda known: Profile(format=1, workflow="demo", functions=known)
)
COSTS = [
    "request_ms", "rpc_ms", "invoke_ms", "ipc_ms", "process_startup_ms", "process_block_ms",
    "process_first_block_ms", "pool_dispatch_ms", "thread_startup_ms", "switch_cost_ms",
]  # fmt: skip
platforms = st.builds(
    Platform,
    format=st.just(1),
    name=st.just("test"),
    cpus=st.integers(1, 4),
    thread_ready_ms=st.none() | times,
    **dict.fromkeys(COSTS, st.just(0.0) | times),
)
triggers = st.sampled_from(["stage", "data"])
plans = st.one_of(
    st.builds(plan, st.sampled_from(SHAPES), st.sampled_from(["fork", "pool"]), trigger=triggers),
    st.builds(
        plan, st.just(APART), st.just("fork"), trigger=triggers, orchestrator=st.just("client")
    ),
)


@given(plans, profiles, platforms)
def test_the_parts_of_all_steps_sum_up_to_the_latency(made, profile, platform):
    predictor = Predictor(profile, platform)
    timeline, tasks = plan_timeline(made, WORKFLOW, predictor)
    steps = explain(timeline, tasks)
    whole_ms = predictor.plan_ms(made, WORKFLOW)
    assert timeline.latency_ms == pytest.approx(whole_ms, abs=1e-5)
    explained_ms = timeline.arrived_ms + sum(step.latency_ms for step in steps)
    assert explained_ms == pytest.approx(whole_ms, abs=1e-3)
    for step in steps:
        parts = [getattr(step.parts, name) for name in Parts.model_fields]
        assert sum(parts) == pytest.approx(step.latency_ms, abs=2e-3)
        assert min(parts) >= 0


@given(plans, profiles, platforms)
def test_a_trace_nests_and_shows_no_more_busy_cores_than_there_are(made, profile, platform):
    trace = chrome_trace(plan_timeline(made, WORKFLOW, Predictor(profile, platform))[0])
    events = json.loads(json.dumps(trace, allow_nan=False))["traceEvents"]
    rows: dict[tuple[int, int], list[tuple[float, float]]] = {}
    for event in events:
        if event["ph"] == "X":
            assert event["dur"] >= 0
            slices = rows.setdefault((event["pid"], event["tid"]), [])
            slices.append((event["ts"], event["ts"] + event["dur"]))
    for slices in rows.values():
        slices.sort(key=lambda each: (each[0], -each[1]))
        for (_, end), (start, after) in pairwise(slices):
            assert start >= end - 0.01 or after <= end + 0.01
    most = {f"cores of {wrap.name}": min(wrap.cpus, platform.cpus) for wrap in made.wraps}
    for event in events:
        if event["ph"] == "C":
            assert 0 <= event["args"]["busy"] <= most[event["name"]]


def test_an_explanation_by_hand(platform, profile):
    """b is forked at 0 and runs from 3; it has half of the core until 7, then blocks from 9 on."""
    known = profile(a="cpu 5", b="cpu 4 block 6", c="block 1", d="cpu 1")
    place = platform(process_startup_ms=3.0, ipc_ms=0.5, rpc_ms=2.0)
    shape = [(1, ["ad", "b"]), (1, ["c"])]
    first, second = explain(*plan_timeline(plan(shape, "fork"), WORKFLOW, Predictor(known, place)))
    # Alone until 3, a has 2 left; both have half of the core until 7; b's last 2 take until 9.
    assert (first.wrap, first.process, first.task, first.latency_ms) == ("w1", 1, "b", 15.5)
    assert first.parts == Parts(
        startup_ms=3.0, computing_ms=4.0, wait_core_ms=2.0, blocked_ms=6.0, gather_ms=0.5
    )
    assert (second.task, second.parts) == ("d", Parts(computing_ms=1.0))


def test_remote_wraps_pay_for_the_network_and_threads_for_the_gil(platform, profile):
    known = profile(a="cpu 1", b="cpu 5", c="cpu 5", d="cpu 1")
    place = platform(rpc_ms=2.0, invoke_ms=1.0)
    shape = [(1, ["a"]), (1, ["bcd"])]
    first, second = explain(*plan_timeline(plan(shape, "fork"), WORKFLOW, Predictor(known, place)))
    assert first.task == "c"
    assert first.parts == Parts(network_ms=3.0, computing_ms=5.0, wait_gil_ms=5.0)
    assert second.parts == Parts(network_ms=2.0, computing_ms=1.0)


def test_a_trace_names_wraps_tasks_and_calls(platform, profile):
    known = profile(a="cpu 1", b="cpu 5", c="cpu 5", d="cpu 1")
    shape = [(1, ["ad", "b"]), (1, ["c"])]
    timeline, _ = plan_timeline(
        plan(shape, "fork"), WORKFLOW, Predictor(known, platform(rpc_ms=2.0, ipc_ms=1.0))
    )
    events = chrome_trace(timeline)["traceEvents"]
    rows = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    assert sorted(rows.values()) == [
        "demo", "w1, main process", "w1, process 2", "w2, main process",
    ]  # fmt: skip
    tasks = {(e["name"], rows[e["pid"]]) for e in events if e.get("cat") == "task"}
    assert tasks == {
        ("a", "w1, main process"), ("b", "w1, process 2"),
        ("c", "w2, main process"), ("d", "w1, main process"),
    }  # fmt: skip
    (call,) = [e for e in events if e.get("cat") == "transfer"]
    assert (call["name"], call["ts"], call["dur"]) == ("to w2", 0.0, 2000.0)

"""Replicas of a plan for a rate become OpenFaaS's labels, below those of the user."""

from __future__ import annotations

import pytest

from chiron.generator.scale_labels import fewer_than_planned, needed_replicas, scale_labels
from chiron.profiler.solo import solo_plan
from chiron.workflow.load import Load, LoadPrediction, Throughput
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Demand, Plan, Wrap

MIN, MAX = "com.openfaas.scale.min", "com.openfaas.scale.max"
TYPE, TARGET = "com.openfaas.scale.type", "com.openfaas.scale.target"
PROPORTION = "com.openfaas.scale.target-proportion"


def plan(
    *replicas: int,
    per_s: float | None = 50.0,
    orchestrator="wrap",
    cpu_ms: tuple[float, ...] = (),
) -> Plan:
    wraps = tuple(
        Wrap(
            name=f"w{n}",
            cpus=1,
            memory_mib=64,
            mechanism="fork",
            processes=((f"t{n}",),),
            replicas=count,
            demand=Demand(cpu_ms=cpu_ms[n], memory_mib=1) if cpu_ms else None,
        )
        for n, count in enumerate(replicas)
    )
    found = Plan(
        format=2,
        workflow="demo",
        planner="pgp",
        wraps=wraps,
        cpus=len(wraps),
        orchestrator=orchestrator,
    )
    if per_s is None:
        return found
    loaded = LoadPrediction(
        load=Load(per_s=per_s),
        replicas={wrap.name: wrap.replicas for wrap in wraps},
        within=(),
        saturation=Throughput(per_s=1.0, low_per_s=1.0, high_per_s=1.0),
        throughput_per_s=1.0,
        cpu_ms=sum(cpu_ms) + 2.0,
        memory_mib=1,
    )
    return found.model_copy(update={"under_load": loaded})


def test_a_plan_for_single_requests_has_no_labels():
    assert scale_labels(plan(1, per_s=None), 0, {"team": "a"}) == {"team": "a"}


def test_a_function_is_profiled_as_one_replica_whatever_its_labels_ask_for():
    alone = solo_plan(Workflow("w", (Task("t", "f", None),), "t"))
    assert scale_labels(alone, 0, {MIN: "2", "team": "a"}) == {MIN: "1", "team": "a"}


def test_the_entry_is_scaled_by_its_requests_and_others_by_no_gateway():
    planned = plan(3, 2)
    rps = {TYPE: "rps", PROPORTION: "1"}
    assert scale_labels(planned, 0, {}) == {MIN: "3", TARGET: "16"} | rps
    assert scale_labels(planned, 1, {}) == {MIN: "2"}
    by_client = plan(3, 2, orchestrator="client")
    assert scale_labels(by_client, 1, {}) == {MIN: "2", TARGET: "25"} | rps


def test_each_wrap_has_the_target_of_its_own_need():
    """At 50/s the wraps compute 0.15, 0.8 and 1.55 cores, with 1 ms each beyond functions."""
    planned = plan(1, 2, 3, cpu_ms=(2.0, 15.0, 30.0))
    beyond_ms = 2.0 / 3
    computing = [50 * (ms + beyond_ms) / 1000 for ms in (2.0, 15.0, 30.0)]
    needed = [needed_replicas(planned, index) for index in range(3)]
    assert needed == pytest.approx([each / 0.7 for each in computing])
    assert scale_labels(planned, 0, {})[TARGET] == str(int(50 / needed[0]))
    others = [scale_labels(planned, index, {}) for index in (1, 2)]
    assert others == [
        {MIN: str(replicas), TYPE: "cpu", TARGET: "700", PROPORTION: "1"} for replicas in (2, 3)
    ]


def test_a_wrap_with_more_replicas_than_it_computes_for_needs_all_but_the_slack_of_the_last():
    planned = plan(3, 3, cpu_ms=(2.0, 2.0))
    assert needed_replicas(planned, 1) == 2.0
    assert scale_labels(planned, 1, {})[TARGET] == str(round(50 * 3.0 / 2))
    assert needed_replicas(plan(1, 1, cpu_ms=(2.0, 90.0)), 1) == 1.0
    assert needed_replicas(plan(1, per_s=None), 0) is None


def test_more_than_openfaas_allows_by_itself_is_asked_for():
    assert scale_labels(plan(21, per_s=5.0), 0, {})[MAX] == "21"
    assert MAX not in scale_labels(plan(20), 0, {})
    assert scale_labels(plan(21, per_s=5.0), 0, {})[TARGET] == "1"


@pytest.mark.parametrize(
    ("own", "least", "warned"),
    [
        ({MIN: "7"}, "7", None),
        ({MIN: "2"}, "2", MIN),
        ({MAX: "2"}, "2", MAX),
        ({MAX: "9"}, "3", None),
        ({TYPE: "cpu", TARGET: "40"}, "3", None),
    ],
)
def test_labels_of_the_user_stay_and_too_few_replicas_are_told(own, least, warned):
    labels = scale_labels(plan(3), 0, own)
    assert labels.items() >= own.items()
    assert labels[MIN] == least
    line = fewer_than_planned(plan(3), 0, own)
    assert (line is None) == (warned is None)
    assert warned is None or (warned in line and "3 replicas for 50/s" in line)

"""Settings that follow from a plan, and annotations from which a deployment is found again."""

from __future__ import annotations

import json

import pytest

from chiron.generator.annotations import TaskFlow, annotate, read_flow
from chiron.generator.settings import (
    client_timeout_s,
    concurrency,
    function_timeouts_s,
    functions_timeout_s,
    service_environment,
    timeout_s,
    wrap_environment,
)
from chiron.scheduler.memory import FORKED_MEMORY_MIB
from chiron.workflow.model import Failure, Task, Workflow
from chiron.workflow.plan import Demand, Plan, Prediction
from chiron.workflow.units import LONGEST_S, go_duration_s
from tests.rows import each_row


def predicted(plan: Plan, high_ms: float) -> Plan:
    prediction = Prediction(latency_ms=1.0, low_ms=1.0, high_ms=high_ms)
    return plan.model_copy(update={"predicted": prediction})


@pytest.fixture
def plan(plan_by_hand):
    return plan_by_hand({"w": [["t"]]})


@pytest.fixture
def pool(plan_by_hand):
    return plan_by_hand({"w": [["t"]]}, mechanism="pool")


@each_row(
    ("high_ms", "seconds"),
    [(0.5, 10.0), (1000.0, 10.0), (1000.1, 11.0), (6000.0, 60.0), (3_600_000.0, 36_000.0)],
)
def test_a_request_may_take_ten_times_its_prediction_and_ten_seconds_at_least(
    high_ms, seconds, plan
):
    assert timeout_s(predicted(plan, high_ms)) == seconds


def test_a_watchdog_that_is_told_to_end_does_so_before_faasd_kills_it(plan):
    for chosen in (plan, predicted(plan, 3_600_000.0)):
        interval = wrap_environment(chosen, chosen.wraps[0])["healthcheck_interval"]
        assert go_duration_s(interval) <= 1.0


def test_without_a_prediction_the_timeout_is_openfaas_own(plan):
    assert timeout_s(plan) == 60.0


@each_row("high_ms", [1.0, 12_345.6, 3_600_000.0])
def test_each_party_waits_longer_than_the_one_it_calls(high_ms, plan):
    chosen = predicted(plan, high_ms)
    variables = wrap_environment(chosen, chosen.wraps[0])
    durations = {variables[f"{kind}_timeout"] for kind in ("exec", "read", "write")}
    (watchdog,) = durations
    assert watchdog.endswith("s")
    assert timeout_s(chosen) < float(watchdog[:-1]) < client_timeout_s(variables)


@each_row("variables", [{}, {"exec_timeout": "soon"}, {"exec_timeout": "0s"}])
def test_a_client_that_is_told_nothing_waits_as_long_as_openfaas_does(variables):
    assert client_timeout_s(variables) == 62.0


@each_row(
    ("text", "seconds"),
    [
        *(("90s", 90.0), ("1m30s", 90.0), ("1h", 3600.0), ("250ms", 0.25), ("1.5s", 1.5)),
        *(
            ("60", 60.0),
            ("2540400h", LONGEST_S),
            ("9" * 400, LONGEST_S),
            ("9" * 400 + "s", LONGEST_S),
        ),
    ],
)
def test_a_function_may_take_as_long_as_its_exec_timeout_says(text, seconds):
    assert function_timeouts_s({"f": {"exec_timeout": text}}) == {"f": seconds}


@each_row("text", ["", "0", "0s", "soon", "5 s", "-1s", "1s!", "s"])
def test_a_function_without_a_duration_has_no_timeout_of_its_own(text):
    assert function_timeouts_s({"f": {"exec_timeout": text}, "g": {}}) == {}


def test_a_request_may_take_as_long_as_its_functions_one_after_another(plan, small):
    longest = dict.fromkeys(small.workflow.functions, 60.0)
    whole_s = functions_timeout_s(small.workflow, longest)
    assert whole_s == 60.0 * len(small.workflow.stages) < 60.0 * len(small.workflow.tasks)
    assert functions_timeout_s(small.workflow, {}) == 0.0
    assert functions_timeout_s(small.workflow, dict.fromkeys(longest, 1e9)) == LONGEST_S
    one = predicted(plan, 1.0)
    assert [timeout_s(one, None, 90.2), timeout_s(one, 5.0, 90.0)] == [91.0, 5.0]


def test_of_a_workflow_that_decides_all_tasks_may_follow_each_other():
    workflow = Workflow("w", (Task("T", "f", None), Task("U", "f", None)), None, machine={})
    assert functions_timeout_s(workflow, {"f": 2.0}) == 4.0


def test_a_timeout_that_is_given_stands(plan):
    assert timeout_s(predicted(plan, 60_000.0), 2.5) == 2.5
    for seconds, written in ((2.5, "4.5s"), (0.0004, "2s"), (8e6, "8000002s")):
        assert wrap_environment(plan, plan.wraps[0], seconds)["exec_timeout"] == written


def demanding(plan: Plan, cpu_ms: float, latency_ms: float, **wrap: object) -> Plan:
    """`plan` with functions that compute for `cpu_ms` of the predicted `latency_ms`."""
    demand = Demand(cpu_ms=cpu_ms, memory_mib=10.0)
    changed = plan.wraps[0].model_copy(update={"demand": demand, "memory_mib": 8192, **wrap})
    prediction = Prediction(latency_ms=latency_ms, low_ms=latency_ms, high_ms=latency_ms)
    return plan.model_copy(update={"wraps": (changed,), "predicted": prediction})


@each_row(
    ("cpu_ms", "cpus", "threads"),
    [
        (50.0, 1, 4),  # always computing: one would do, four are the least
        (10.0, 1, 9),  # five would keep the CPU busy if their times did not vary
        (5.0, 1, 15),
        (5.0, 2, 27),
        (0.15, 1, 347),
        (0.01, 2, 512),  # as many as are taken in
        (0.0, 2, 8),  # nothing is known of what it takes
    ],
)
def test_requests_that_wait_leave_their_cpu_to_others(cpu_ms, cpus, threads, plan):
    assert concurrency(demanding(plan, cpu_ms, 50.0, cpus=cpus)) == threads


def test_the_wrap_with_the_least_cpu_says_how_many_requests_the_others_run(plan):
    light = demanding(plan, 1.0, 50.0).wraps[0]
    both = demanding(plan, 10.0, 50.0)
    both = both.model_copy(update={"wraps": (light, *both.wraps)})
    assert [wrap_environment(both, wrap)["WAITRESS_THREADS"] for wrap in both.wraps] == ["9"] * 2


def test_no_more_requests_run_at_once_than_have_room(plan):
    assert concurrency(demanding(plan, 1.0, 50.0, memory_mib=128)) == 8


@each_row(
    ("function_mib", "memory_mib", "threads"), [(300.0, 396, 1), (20.0, 116, 3), (300.0, 1024, 3)]
)
def test_functions_that_take_much_memory_are_not_run_too_often_at_once(
    function_mib, memory_mib, threads, plan
):
    chosen = demanding(plan, 50.0, 50.0, memory_mib=memory_mib)
    demand = Demand(cpu_ms=50.0, memory_mib=function_mib)
    wrap = chosen.wraps[0].model_copy(update={"demand": demand})
    assert concurrency(chosen.model_copy(update={"wraps": (wrap,)})) == threads


@each_row(
    ("cpu_ms", "memory_mib", "workers"), [(5.0, 128, "4"), (5.0, 8192, "15"), (0.1, 8192, "32")]
)
def test_a_pool_has_workers_for_as_many_requests_as_have_room_and_its_cpus_serve(
    cpu_ms, memory_mib, workers, pool
):
    processes = ((), ("t",), ("u",))
    chosen = demanding(pool, cpu_ms, 50.0, memory_mib=memory_mib, processes=processes)
    assert wrap_environment(chosen, chosen.wraps[0])["pool_concurrency"] == workers


@each_row("mechanism", ["fork", "pool"])
@each_row("cpus", [1, 5])
@each_row("function_mib", [0.5, 30.0, 150.0])
def test_all_requests_that_run_at_once_have_room_with_their_processes(
    function_mib, cpus, mechanism, plan_by_hand
):
    chosen = plan_by_hand({"w": [[], *([task] for task in "abcde")]}, mechanism=mechanism)
    demand = Demand(cpu_ms=5.0, memory_mib=function_mib, imports_mib=20.0)
    sized = {"cpus": cpus, "memory_mib": 96 + 20 + 150 + 5 * 16, "demand": demand}
    wrap = chosen.wraps[0].model_copy(update=sized)
    chosen = predicted(chosen.model_copy(update={"wraps": (wrap,)}), 1000.0)
    variables = wrap_environment(chosen, wrap)
    threads = int(variables["WAITRESS_THREADS"])
    assert 48 + 20 + threads * (function_mib + 5 * FORKED_MEMORY_MIB) <= wrap.memory_mib
    assert int(variables.get("pool_concurrency", threads)) == threads


def test_all_wraps_serve_four_requests_for_each_cpu_of_the_widest(plan):
    wide = plan.wraps[0].model_copy(update={"cpus": 3})
    both = plan.model_copy(update={"wraps": (plan.wraps[0], wide)})
    variables = [wrap_environment(both, wrap) for wrap in both.wraps]
    assert [its["WAITRESS_THREADS"] for its in variables] == ["12", "12"]
    assert [its["WRAP_CPUS"] for its in variables] == ["1", "3"]
    memory = [str(wrap.memory_mib) for wrap in both.wraps]
    assert [its["WRAP_MEMORY_MIB"] for its in variables] == memory


@each_row(("high_ms", "inflight"), [(0.5, 512), (100.0, 100), (1000.0, 10), (60_000.0, 10)])
def test_no_more_requests_are_taken_in_than_can_be_answered_in_time(high_ms, inflight, plan):
    chosen = predicted(plan, high_ms)
    assert wrap_environment(chosen, chosen.wraps[0])["max_inflight"] == str(inflight)


def test_every_request_that_is_taken_in_may_get_a_thread(plan):
    wide = plan.wraps[0].model_copy(update={"cpus": 8})
    chosen = predicted(plan.model_copy(update={"wraps": (wide,)}), 60_000.0)
    variables = wrap_environment(chosen, wide)
    assert variables["max_inflight"] == variables["WAITRESS_THREADS"] == "32"


def test_a_pool_has_a_worker_for_each_cpu_and_two_at_least(plan, pool):
    assert "pool_concurrency" not in wrap_environment(plan, plan.wraps[0])
    wide = pool.wraps[0].model_copy(update={"cpus": 3})
    workers = [wrap_environment(pool, wrap)["pool_concurrency"] for wrap in (pool.wraps[0], wide)]
    assert workers == ["2", "3"]


def test_the_first_wrap_is_annotated_as_the_entry(small, plan_by_hand):
    wraps = {"a": [["Split it"]], "b": [["Wave"]]}
    plan = plan_by_hand(wraps)
    roles = [annotate(plan, index, small.workflow)["chiron.role"] for index in (0, 1)]
    assert roles == ["entry", "wrap"]
    assert annotate(plan, 1, small.workflow) == {
        "chiron.workflow": "small",
        "chiron.planner": "pgp",
        "chiron.role": "wrap",
        "chiron.functions": "wave",
        "prometheus.io.scrape": "true",
    }


def test_a_flow_comes_back_as_it_was_written(small, plan_of):
    plan = plan_of(small.workflow, "one-to-one")
    flows = [read_flow(annotate(plan, index, small.workflow)) for index in range(6)]
    assert flows[0] == TaskFlow(task=0, stage=0, source=None, output=5)
    assert TaskFlow(task=5, stage=3, source=[2, 4], output=5) in flows
    assert sorted(flow.task for flow in flows) == list(range(6))


def test_annotations_hold_no_task_names(small, plan_of):
    plan = plan_of(small.workflow, "one-to-one")
    written = json.dumps([annotate(plan, index, small.workflow) for index in range(6)])
    assert not [task.name for task in small.workflow.tasks if task.name in written]


def test_a_fail_state_comes_back_character_by_character(plan_of):
    failure = Failure("é\0\"'\n", "${HOME} {{ x }}\\" * 500)
    workflow = Workflow("w", (Task("T", "wave", None),), None, failure)
    annotations = annotate(plan_of(workflow, "one-to-one"), 0, workflow)
    assert read_flow(annotations).fail == [failure.error, failure.cause]


def test_objects_that_wait_may_take_half_of_what_functions_leave(plan):
    (wrap,) = plan.wraps[:1]
    demand = Demand(cpu_ms=10.0, memory_mib=100.0, imports_mib=20.0)

    def sink_mib(memory_mib: int) -> str | None:
        sized = wrap.model_copy(update={"memory_mib": memory_mib, "demand": demand})
        alone = plan.model_copy(update={"wraps": (sized,)})
        return wrap_environment(alone, sized).get("WRAP_OBJECTS_MIB")

    assert sink_mib(168) == "8"  # one request's functions take all of it
    assert sink_mib(10_068) == "4800"  # four requests' take 400 MiB, and the idle wrap 68
    unknown = wrap.model_copy(update={"demand": None})
    assert "WRAP_OBJECTS_MIB" not in wrap_environment(plan, unknown)


_SHOP, _OTHER = {"OTEL_SERVICE_NAME": "shop"}, {"OTEL_SERVICE_NAME": "other"}
_OF_RESOURCE = {"OTEL_RESOURCE_ATTRIBUTES": "team=a, service.name=shop"}


@each_row(
    ("one", "two", "own"),
    [
        ({}, {}, False),
        (_SHOP, _SHOP, False),
        (_SHOP, _OF_RESOURCE, False),
        ({"OTEL_RESOURCE_ATTRIBUTES": "team=a"}, {}, False),
        (_SHOP, {}, True),
        (_OF_RESOURCE, {}, True),
        (_SHOP, _OTHER, True),
        (_OTHER | _OF_RESOURCE, _SHOP, True),
    ],
)
def test_the_name_of_one_function_is_not_the_service_of_all(one, two, own):
    expected = {"WRAP_SERVICE_NAME": ""} if own else {}
    assert service_environment({"a": one, "b": two}) == expected

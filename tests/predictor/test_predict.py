"""Plans are predicted as the equations and the simulation say, or refused."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from by_hand import FUNCTIONS, TWO_WRAPS, WORKFLOW, Wraps, plan
from hypothesis import given
from hypothesis import strategies as st

from chiron.evaluation.scheduling.exhaustive import stage_ms
from chiron.predictor.predict import Predictor, predict
from chiron.predictor.wiring import as_idle
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow
from chiron.workflow.platform import IDLE_MS, Platform
from chiron.workflow.profile import FunctionProfile, Period, Profile

#: An endless simulation would hang again in every attempt of hypothesis to shrink it.
pytestmark = pytest.mark.timeout(600, method="thread")

times = st.floats(0.0, 30.0).map(lambda time: round(time, 3))


@st.composite
def functions(draw: st.DrawFn) -> FunctionProfile:
    start, periods = 0.0, []
    for kind in draw(st.lists(st.sampled_from(["cpu", "native", "block"]), max_size=4)):
        duration = draw(times)
        periods.append(Period(kind=kind, start_ms=start, duration_ms=duration))
        start += duration
    spread = draw(st.none() | st.tuples(times, times))
    return FunctionProfile(latency_ms=start, periods=tuple(periods), spread_ms=spread)


profiles = st.fixed_dictionaries({name: functions() for name in "abcd"}).map(
    lambda known: Profile(format=1, workflow="demo", functions=known)
)
constants = st.fixed_dictionaries(
    {
        name: st.sampled_from([0.0, 1.0]) | times
        for name in Platform.model_fields
        if name.endswith("_ms") and name not in ("switch_interval_ms", "process_compute_ms")
    }
)
shapes = st.sampled_from(
    [
        TWO_WRAPS,
        [["abcd"]],
        [["abd"], ["c"]],
        [["", "ad", "b", "c"]],
        [["a"], ["bd", "c"]],
    ]
)


def test_a_plan_of_forks_and_a_remote_wrap_adds_up(costs, profile):
    """Main process from 2 to 12, b forked from 3 to 7, 0.5 for IPC; c: 3 + 1 + 8; then d."""
    prediction = predict(plan(TWO_WRAPS), WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.latency_ms == 1.0 + 12.5 + 2.0


def test_a_slow_remote_wrap_decides_its_stage(costs, profile):
    slow = profile(**(FUNCTIONS | {"c": "block 30"}))
    assert predict(plan(TWO_WRAPS), WORKFLOW, slow, costs).latency_ms == 1.0 + 39.0 + 2.0


def test_a_wrap_with_one_cpu_shares_it(costs, profile):
    """From 3 both processes share: b ends at 11, a's last 5 alone at 16, 0.5 for IPC."""
    prediction = predict(plan(TWO_WRAPS, cpus=1), WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.latency_ms == 1.0 + 16.5 + 2.0


def test_no_wrap_has_more_cpus_than_the_platform(platform, profile):
    one_core = platform(cpus=1)
    prediction = predict(plan([["ad", "b", "c"]], cpus=3), WORKFLOW,
                         profile(**FUNCTIONS), one_core)  # fmt: skip
    assert prediction.latency_ms == 14.0 + 2.0


def test_workers_of_a_pool_are_dispatched_not_forked(costs, profile):
    prediction = predict(plan(TWO_WRAPS, mechanism="pool"), WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.latency_ms == 1.0 + 12.0 + 2.0  # c decides; wrap 1 takes 0.25 + 10 + 0.5


@pytest.mark.parametrize(
    ("first", "second", "waited_ms"),
    [("cpu 5", "native 9", 3.0), ("cpu 5", "cpu 1 block 7", 1.0), ("block 5 cpu 9", "cpu 9", 0.0)],
)
def test_the_main_process_and_a_worker_wait_for_each_other_while_both_compute(
    platform, profile, first, second, waited_ms
):
    found = Predictor(profile(a=first, b=second), platform(pool_core_wait_ms=3.0))
    alone_ms = found.each_ms((("a",), ("b",)))
    assert found.simulate((("a",), ("b",)), 2, "pool") == [ms + waited_ms for ms in alone_ms]
    assert found.simulate(((), ("a",), ("b",)), 2, "pool")[1:] == alone_ms
    assert found.simulate((("a", "b"),), 2, "pool") == found.each_ms((("a", "b"),))


def test_processes_that_share_cores_anyway_do_not_wait_for_each_other_besides(platform, profile):
    found = Predictor(profile(a="native 6"), platform(pool_core_wait_ms=3.0))
    assert found.simulate((("a",), ("a",)), 1, "pool") == [12.0, 12.0]
    assert found.simulate((("a",), ("a",), ("a",)), 2, "pool") == [9.0, 9.0, 9.0]
    assert found.simulate((("a",), ("a",), ("a",)), 3, "pool") == [9.0, 9.0, 9.0]


def test_threads_of_one_process_begin_in_its_order_and_take_turns(costs, profile):
    """c waits for 3 from 0 where it is first; else b calls it at 5, and it comes after a, at 14."""
    first, last = (
        predict(plan([[order]]), WORKFLOW, profile(**FUNCTIONS), costs).latency_ms
        for order in ("cabd", "abcd")
    )
    assert (first, last) == (1.0 + 14.0 + 2.0, 1.0 + 14.0 + 3.0 + 2.0)


def test_what_a_function_computes_at_once_needs_cores_of_its_own(platform, profile):
    known = profile(a="cpu 2 native*2.5 10 block 3", b="cpu 12")
    predictor = Predictor(known, platform())
    alone_ms = {cpus: stage_ms(predictor, (("a",),), cpus, "pool") for cpus in (4, 2, 1)}
    assert alone_ms == {4: 15.0, 2: 17.5, 1: 30.0}
    assert stage_ms(predictor, (("a",), ("b",)), 2, "pool") == 2 + (25 + 10) / 2 + 3


def test_an_empty_main_process_only_waits(costs, profile):
    """Forked at 0, 2, 4 and ready 3 later: a 3-13, b 5-9, c 7-10; IPC for three; d 2 and IPC.

    The process of d is there already.
    """
    sand = plan([["", "ad", "b", "c"]], cpus=3, planner="sand")
    prediction = predict(sand, WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.latency_ms == 1.0 + 13.0 + 1.5 + 2.0 + 0.5


def test_the_client_of_one_to_one_calls_every_wrap_itself(costs, profile):
    """Nothing is local: wrap k leaves (k-1) T_INV late and pays T_RPC; no request to a first."""
    wraps: Wraps = [["a"], ["b"], ["c"], ["d"]]
    prediction = predict(
        plan(wraps, cpus=1, orchestrator="client"), WORKFLOW, profile(**FUNCTIONS), costs
    )
    assert prediction.latency_ms == 28.0


def test_a_stage_without_the_first_wrap_is_all_remote(costs, profile):
    wraps: Wraps = [["cab"], ["d"]]
    prediction = predict(plan(wraps, cpus=1), WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.latency_ms == 1.0 + 14.0 + 2.0 + 8.0


#: Two chains: c needs a, and d needs b.
CHAINS = Workflow(
    "demo",
    (Task("a", "a", None), Task("b", "b", None), Task("c", "c", "a"), Task("d", "d", "b")),
    ("c", "d"),
)


def chains_ms(wraps: Wraps, known: Profile, costs: Platform, trigger: str) -> float:
    return predict(plan(wraps, trigger=trigger), CHAINS, known, costs).latency_ms


def test_with_trigger_data_no_task_waits_for_others_than_those_it_needs(costs, profile):
    """a 2-12 in the main process, and c after it; b 3-7 in the other one, and d after it.

    With stages c and d begin at 12, and when b is gathered; with data both processes go on by
    themselves. In the end d is gathered, with what b has given before.
    """
    known = profile(**FUNCTIONS)
    assert chains_ms([["ac", "bd"]], known, costs, "stage") == 1.0 + 12.0 + 0.5 + 3.0 + 0.5
    assert chains_ms([["ac", "bd"]], known, costs, "data") == 1.0 + 12.0 + 3.0 + 0.5


def test_a_process_is_started_with_its_first_task_and_stays_for_the_others(costs, profile):
    """b needs no process; d is forked for at 4 and runs from 7 to 9, before a ends."""
    known = profile(**FUNCTIONS | {"a": "block 10"})
    assert chains_ms([["abc", "d"]], known, costs, "data") == 1.0 + 10.0 + 3.0 + 0.5
    late = profile(**FUNCTIONS | {"a": "block 10", "d": "cpu 9"})
    assert chains_ms([["abc", "d"]], late, costs, "data") == 1.0 + 4.0 + 3.0 + 9.0 + 0.5


def test_an_output_that_other_processes_get_is_given_once(costs, profile):
    """However many they are; and not at all within the process that it comes from."""
    place = costs.model_copy(update={"shared_ms_per_mb": 0.5})
    known = profile(**dict.fromkeys("abcd", "block 10"))
    large = known.functions["a"].model_copy(update={"output_bytes": 4_000_000})
    known = known.model_copy(update={"functions": known.functions | {"a": large}})
    for wraps, more_ms in (
        ([["abcd"]], 0.0),
        ([["bd", "a", "c"]], 2.0),
        ([["a", "bcd"]], 2.0),
        ([["bc", "ad"]], 0.0),
    ):
        made = plan(wraps, trigger="data", mechanism="pool")
        before_ms = Predictor(known, costs).plan_ms(made, WORKFLOW)
        assert Predictor(known, place).plan_ms(made, WORKFLOW) == before_ms + more_ms


def test_outputs_are_joined_once_in_each_process_that_needs_their_list(costs, profile):
    place = costs.model_copy(update={"joined_ms_per_mb": 0.5})
    known = profile(**dict.fromkeys("abcd", "cpu 10"))
    large = {
        name: known.functions[name].model_copy(update={"input_bytes": 4_000_000}) for name in "cd"
    }
    known = known.model_copy(update={"functions": known.functions | large})
    tasks = [Task(name, name, None) for name in "ab"] + [
        Task(name, name, ("a", "b")) for name in "cd"
    ]
    fanned = Workflow("fanned", tuple(tasks), ("c", "d"))
    for wraps, more_ms in (([["abcd"]], 2.0), ([["abc", "d"]], 2.0), ([["ac"], ["bd"]], 2.0)):
        made = plan(wraps, trigger="data", mechanism="pool")
        before_ms = Predictor(known, costs).plan_ms(made, fanned)
        assert Predictor(known, place).plan_ms(made, fanned) == before_ms + more_ms


def test_what_fires_within_a_request_costs_the_engine_its_turn(costs, profile):
    place = costs.model_copy(update={"stage_ms": 1.0})
    known = profile(**FUNCTIONS)
    for trigger in ("stage", "data"):
        before_ms = chains_ms([["ac", "bd"]], known, costs, trigger)
        assert chains_ms([["ac", "bd"]], known, place, trigger) == before_ms + 1.0


def test_another_wrap_is_called_once_for_what_it_can_go_on_with_by_itself(costs, profile):
    """b 9-13, then d. With stages it is called again when a and b have ended, to be there at 21."""
    known = profile(**FUNCTIONS)
    assert chains_ms([["ac"], ["bd"]], known, costs, "data") == 1.0 + 13.0 + 2.0
    assert chains_ms([["ac"], ["bd"]], known, costs, "stage") == 1.0 + 13.0 + 9.0 + 2.0


def test_the_objects_of_a_call_are_back_when_its_last_task_has_ended(costs, profile):
    """So data can be slower than stages: c in the first wrap needs a of the other, and no d."""
    known = profile(a="cpu 1", b="cpu 1", c="cpu 20", d="cpu 30")
    both = Workflow(
        "demo",
        (Task("a", "a", None), Task("b", "b", None), Task("c", "c", "a"), Task("d", "d", "a")),
        ("b", "c", "d"),
    )
    data, stage = (
        predict(plan([["bc"], ["ad"]], trigger=trigger), both, known, costs).latency_ms
        for trigger in ("data", "stage")
    )
    assert data == 1.0 + 9.0 + 1.0 + 30.0 + 20.0
    assert stage == 1.0 + 9.0 + 1.0 + 9.0 + 30.0


def test_a_client_calls_every_task_when_what_it_needs_is_there(costs, profile):
    """Both chains pay T_RPC twice; b's call leaves T_INV after a's, and so do those after them."""
    wraps: Wraps = [["a"], ["b"], ["c"], ["d"]]
    known = profile(**FUNCTIONS)
    found = predict(
        plan(wraps, cpus=1, orchestrator="client", trigger="data"), CHAINS, known, costs
    )
    assert found.latency_ms == max(8.0 + 10.0 + 8.0 + 3.0, 1.0 + 8.0 + 4.0 + 8.0 + 2.0)


def test_a_workflow_may_take_longer_than_an_hour(platform, profile):
    hours = profile(**dict.fromkeys("abcd", "cpu 3600000"))
    prediction = predict(plan([["abcd"]]), WORKFLOW, hours, platform(switch_interval_ms=10_000.0))
    assert prediction.latency_ms == pytest.approx(4 * 3_600_000)


def refusal(call: Callable[[], object]) -> ChironError:
    with pytest.raises(ChironError) as caught:
        call()
    return caught.value


def test_functions_without_a_profile_are_named(costs, profile):
    error = refusal(lambda: predict(plan(TWO_WRAPS), WORKFLOW, profile(a="cpu 1"), costs))
    assert (error.code, error.functions) == ("unknown-function", ("b", "c", "d"))


@pytest.mark.parametrize(
    ("wraps", "code"),
    [
        ([["ad", "b"]], "missing-task"),
        ([["abcd"], ["a"]], "repeated-task"),
        ([["abcd", "e"]], "unknown-task"),
    ],
)
def test_a_plan_of_another_workflow_is_refused(costs, profile, wraps, code):
    error = refusal(lambda: predict(plan(wraps), WORKFLOW, profile(**FUNCTIONS), costs))
    assert error.code == code


@given(st.data())
def test_tasks_of_one_function_may_change_places(data):
    tasks = "uvwxyz"
    of = {task: data.draw(st.sampled_from("ab")) for task in tasks}
    parallel = Workflow("demo", tuple(Task(t, of[t], None) for t in tasks), None)
    known = Profile(format=1, workflow="demo", functions={n: data.draw(functions()) for n in "ab"})
    platform = Platform(format=1, name="test", cpus=2, **data.draw(constants))
    layout = data.draw(st.sampled_from([["uvwxyz"], ["uv", "wx", "yz"], ["uvw", "x", "yz"]]))
    other = dict[str, str]()
    for name in "ab":
        own = [task for task in tasks if of[task] == name]
        other |= zip(own, data.draw(st.permutations(own)), strict=True)
    moved = ["".join(other[task] for task in process) for process in layout]
    one = predict(plan([layout]), parallel, known, platform)
    assert predict(plan([moved]), parallel, known, platform) == one


def test_wraps_of_one_node_compete_for_its_cores(platform, profile):
    """On one core a and c's wrap take turns; where each wrap has its own cores they do not."""
    busy = profile(a="cpu 10", b="cpu 4", c="cpu 10", d="cpu 2")
    apart: Wraps = [["abd"], ["c"]]
    alone, together = (
        predict(plan(apart, cpus=1), WORKFLOW, busy, platform(cpus=1, one_node=one_node))
        for one_node in (False, True)
    )
    assert (alone.latency_ms, together.latency_ms) == (14.0 + 2.0, 24.0 + 2.0)


def test_calls_keep_a_core_busy_that_they_share_with_the_wraps(platform, profile):
    """The core has 24 ms of functions to compute, and 1 of the 3 that a call costs."""
    busy = profile(a="cpu 10", b="cpu 4", c="cpu 10", d="cpu 2")
    apart: Wraps = [["abd"], ["c"]]
    alone, together = (
        predict(
            plan(apart, cpus=1),
            WORKFLOW,
            busy,
            platform(cpus=1, one_node=one_node, rpc_ms=3.0, invoke_ms=1.0),
        )
        for one_node in (False, True)
    )
    assert (alone.latency_ms, together.latency_ms) == (14.0 + 2.0, 25.0 + 2.0)


def test_a_clients_calls_compute_all_their_way_where_wraps_share_the_cores(platform, profile):
    """The core computes three calls of 2 ms and 24 ms of functions, then one call and d."""
    busy = profile(a="cpu 10", b="cpu 4", c="cpu 10", d="cpu 2")
    alone, together = (
        predict(
            plan([["a"], ["b"], ["c"], ["d"]], cpus=1, orchestrator="client"),
            WORKFLOW,
            busy,
            platform(cpus=1, one_node=one_node, request_ms=2.0),
        )
        for one_node in (False, True)
    )
    assert alone.latency_ms == (2.0 + 10.0) + (2.0 + 2.0)
    assert together.latency_ms == (3 * 2.0 + 24.0) + (2.0 + 2.0)


def test_calls_that_cost_nothing_leave_at_once_where_wraps_share_the_cores(platform, profile):
    short = profile(**dict.fromkeys("abcd", "cpu 0.5"))
    free = platform(cpus=1, one_node=True, invoke_ms=1.0)
    each: Wraps = [["a"], ["b"], ["c"], ["d"]]
    found = predict(plan(each, cpus=1, orchestrator="client"), WORKFLOW, short, free)
    assert found.latency_ms == 3 * 0.5 + 0.5


def test_what_runs_in_a_forked_process_takes_as_long_as_it_did_in_one(platform, profile):
    functions = profile(**FUNCTIONS).functions
    slower = functions["b"].model_copy(update={"forked_ms": 16.0})
    known = Profile(format=1, workflow="demo", functions=functions | {"b": slower})
    wraps: Wraps = [["ad", "b"], ["c"]]
    fork = predict(plan(wraps), WORKFLOW, known, platform())
    pool = predict(plan(wraps, mechanism="pool"), WORKFLOW, known, platform())
    assert (fork.latency_ms, pool.latency_ms) == (16.0 + 2.0, 10.0 + 2.0)


def test_a_process_that_is_forked_keeps_a_core_busy_meanwhile(platform, profile):
    """a shares the only core with the fork of b for 3 ms each, then with b's 4 ms, then ends."""
    costs = platform(process_startup_ms=3.0, process_compute_ms=3.0, main_wait_ms=0.0)
    prediction = predict(plan([["ad", "b"], ["c"]], cpus=1), WORKFLOW, profile(**FUNCTIONS), costs)
    assert prediction.latency_ms == 17.0 + 2.0


@given(shapes, profiles, constants, st.integers(1, 3), st.sampled_from(["fork", "pool"]))
def test_every_prediction_lies_within_its_range(wraps, profile, constants, cpus, mechanism):
    variation = {"work_variation": (0.9, 1.0, 1.1, 1.5), "request_variation": (-0.5, 0.0, 3.0)}
    platform = Platform(format=1, name="test", cpus=2, **constants, **variation)
    prediction = predict(plan(wraps, cpus, mechanism=mechanism), WORKFLOW, profile, platform)
    assert 0 <= prediction.low_ms <= prediction.latency_ms <= prediction.high_ms
    within = prediction.within
    assert 0 <= within.low_ms <= within.ms <= within.high_ms
    assert prediction.latency_ms <= within.ms


@given(shapes, profiles, constants, st.sampled_from(["fork", "pool"]), st.sampled_from([0.5, 2.0]))
def test_a_place_where_all_takes_twice_as_long_takes_twice_as_long(
    wraps, profile, constants, mechanism, scale
):
    scaled_constants = {name: value * scale for name, value in constants.items()}
    once = Platform(format=1, name="once", cpus=2, **constants)
    scaled = Platform(
        format=1, name="scaled", cpus=2, switch_interval_ms=5.0 * scale, **scaled_constants
    )
    made = plan(wraps, mechanism=mechanism)
    latency_ms = Predictor(profile, once).plan_ms(made, WORKFLOW)
    longer = Predictor(profile, scaled, dict.fromkeys("abcd", scale))
    assert longer.plan_ms(made, WORKFLOW) == pytest.approx(latency_ms * scale, rel=1e-6, abs=1e-5)


def test_several_payloads_are_predicted_one_by_one_and_counted_by_their_weights(
    profile, of_payloads, costs
):
    small = profile(**FUNCTIONS)
    large = profile(**FUNCTIONS | {"c": "block 100", "d": "cpu 20"})
    alone = [predict(plan(TWO_WRAPS), WORKFLOW, each, costs) for each in (small, large)]

    mix = of_payloads(small=(3.0, small), large=(1.0, large))
    mix = mix.model_copy(update={"warnings": ("taken in a hurry",)})
    found = predict(plan(TWO_WRAPS), WORKFLOW, mix, costs)

    latencies = [each.latency_ms for each in alone]
    assert found.mean_ms == pytest.approx(0.75 * latencies[0] + 0.25 * latencies[1], abs=1e-3)
    assert found.latency_ms == latencies[0]
    assert (found.within.percentile, found.within.ms) == (95, latencies[1])
    assert found.payloads_ms == dict(zip(("small", "large"), latencies, strict=True))
    assert found.warnings == ("taken in a hurry",)
    assert (found.low_ms, found.high_ms) == (alone[0].low_ms, alone[0].high_ms)
    assert (found.within.low_ms, found.within.high_ms) == (alone[1].low_ms, alone[1].high_ms)


def test_one_payload_is_predicted_as_if_it_had_no_name(profile, of_payloads, costs):
    one = profile(**FUNCTIONS)
    found = predict(plan(TWO_WRAPS), WORKFLOW, of_payloads(only=(5.0, one)), costs)
    assert found == predict(plan(TWO_WRAPS), WORKFLOW, one, costs)


def test_a_request_costs_more_after_functions_that_take_longer(costs, profile):
    chain = Workflow("demo", (Task("a", "a", None), Task("b", "a", "a")), "b")
    place = costs.model_copy(update={"idle": {"request_ms": 4.0, "stage_ms": 2.0}})

    def costs_ms(latency_ms: float) -> float:
        found = predict(plan([["ab"]]), chain, profile(a=f"block {latency_ms}"), place)
        return found.latency_ms - 2 * latency_ms

    nothing_ms = costs_ms(0.0)
    more_ms = [costs_ms(latency_ms) - nothing_ms for latency_ms in (2.5, 5.0, 10.0, 50.0)]
    assert more_ms == pytest.approx([2.5, 5.0, 6.0, 6.0])


def test_a_sandbox_idles_while_a_client_calls_the_others(costs, profile):
    chain = Workflow("demo", tuple(Task(t, "a", None) for t in "abcd"), "d")
    place = costs.model_copy(update={"request_ms": 1.0, "idle": {"request_ms": 4.0}})
    wraps: Wraps = [["a"], ["b"], ["c"], ["d"]]

    def more_ms(latency_ms: float, **fields: str) -> float:
        known = profile(a=f"block {latency_ms}")
        return as_idle(place, plan(wraps, **fields), chain, known).request_ms - place.request_ms

    client = {"orchestrator": "client", "trigger": "stage"}
    assert more_ms(0.5, **client) == pytest.approx(4.0 * (4 * 0.5 + 3 * 1.0) / IDLE_MS)
    assert more_ms(2.5, **client) == more_ms(2.5) == 4.0
    assert more_ms(0.5) == pytest.approx(4.0 * 4 * 0.5 / IDLE_MS)

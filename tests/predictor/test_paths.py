"""What objects cost on their way from wrap to wrap, with numbers that one can add up by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from chiron.predictor.paths import crossings
from chiron.predictor.plan_timeline import plan_timeline
from chiron.predictor.predict import Predictor, predict
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap
from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import Profile

#: From one to the next, c gives the answer.
CHAIN = Workflow("demo", (Task("a", "a", None), Task("b", "b", "a"), Task("c", "c", "b")), "c")
PAIR = Workflow("demo", (*(Task(t, t, None) for t in "ab"), Task("c", "c", ("a", "b"))), "c")
WORKS = {"a": "cpu 10", "b": "cpu 4", "c": "cpu 2"}
MB = 1_000_000
DIRECT, GATEWAY, STORE = (
    PathCost(ms=ms, ms_per_mb=ms_per_mb) for ms, ms_per_mb in ((1.0, 0.5), (5.0, 2.0), (8.0, 1.0))
)
ALL = {"direct": DIRECT, "gateway": GATEWAY, "store": STORE}


@pytest.fixture
def place(platform) -> Platform:
    """T_RPC is 2 ms, directly."""
    return platform(rpc_ms=2.0, paths=ALL)


def sized(profile: Profile, request: int = 0, **sizes: int) -> Profile:
    """`profile` where functions give so many bytes, and get a request of so many."""
    functions = {
        name: function.model_copy(
            update={"output_bytes": sizes.get(name, 0), "input_bytes": request}
        )
        for name, function in profile.functions.items()
    }
    return profile.model_copy(update={"functions": functions})


def plan(*wraps: Sequence[str], cpus: int = 1, **fields: Any) -> Plan:
    """Wraps of one process each, by their tasks."""
    made = tuple(
        Wrap(name=f"w{n}", cpus=cpus, memory_mib=64, mechanism="fork", processes=(tuple(tasks),))
        for n, tasks in enumerate(wraps)
    )
    known = {"format": 2, "workflow": "demo", "planner": "pgp"}
    return Plan(**known, wraps=made, cpus=cpus * len(made), **fields)


def latency_ms(made: Plan, workflow: Workflow, profile: Profile, platform: Platform) -> float:
    return Predictor(profile, platform).plan_ms(made, workflow)


def test_an_object_goes_straight_to_the_wrap_that_needs_it(place, profile):
    """a: 1 + 10; its 4 MB 1 + 2 to b; b: 4; its 2 MB 1 + 1 to c in the first wrap; c: 2."""
    known = sized(profile(**WORKS), a=4 * MB, b=2 * MB)
    made = plan("c", "a", "b")
    assert latency_ms(made, CHAIN, known, place) == 1 + 10 + 3 + 4 + 2 + 2


def test_through_the_gateway_it_goes_by_the_home(place, profile):
    """T_RPC is 8 ms more there. a: 10 + 10, 4 MB home 8; b: 8 + 10 + 4, 2 MB home 4; c: 2."""
    known = sized(profile(**WORKS), a=4 * MB, b=2 * MB)
    made = plan("c", "a", "b", path="gateway")
    assert latency_ms(made, CHAIN, known, place) == 10 + 10 + 8 + (10 + 8 + 4) + 4 + 2


def test_a_store_has_it_in_between(place, profile):
    """T_RPC is 2. a: 2 + 10, put 4 + 2; b: 2, got 4 + 2, 4, put and got 8 + 2; c: 2."""
    known = sized(profile(**WORKS), a=4 * MB, b=2 * MB)
    made = plan("c", "a", "b", path="store")
    assert latency_ms(made, CHAIN, known, place) == (2 + 10 + 6) + (2 + 6 + 4 + 10) + 2


def test_a_wrap_is_told_to_begin_once_and_tells_the_end_once(place, profile):
    """Three stages in another wrap: half of T_RPC there, and half back; the request's MB there."""
    known = sized(profile(**WORKS), request=2 * MB)
    workflow = Workflow("demo", (*CHAIN.tasks, Task("d", "a", None)), "d")
    assert latency_ms(plan("d", "abc", cpus=2), workflow, known, place) == 1 + 1 + 16 + 1


def test_a_connection_sends_one_object_after_another(place, profile):
    """Of two of 4 MB that are to leave at 1 + 10 + 1, the second is there 2 ms after the first;
    what is empty waits for both: d begins when a has had the GIL for 5 ms."""
    known = sized(profile(**(WORKS | {"b": "block 10"})), a=4 * MB, b=4 * MB)
    assert latency_ms(plan("c", "ba", cpus=2), PAIR, known, place) == 1 + 10 + 1 + 4 + 2
    assert latency_ms(plan("c", "a", "b", cpus=2), PAIR, known, place) == 1 + 10 + 1 + 2 + 2
    tasks = (*PAIR.tasks[:2], Task("d", "d", None), Task("e", "c", "d"))
    known = sized(profile(**(WORKS | {"b": "block 10", "d": "block 5"})), a=4 * MB, b=4 * MB)
    workflow = Workflow("demo", tasks, ("a", "b", "e"))
    assert latency_ms(plan("e", "bad", cpus=2), workflow, known, place) == 1 + 10 + 1 + 4 + 2


def test_what_many_send_to_one_core_takes_it_longer(place, profile):
    known = sized(profile(**(WORKS | {"b": "cpu 10"})), a=4 * MB, b=4 * MB)
    assert latency_ms(plan("c", "a", "b", cpus=1), PAIR, known, place) == 1 + 10 + 1 + 4 + 2


def test_on_one_node_whose_cores_all_share_both_ends_do(platform, profile):
    """Two objects of 2 ms each are sent and taken in by 4 wraps on 2 cores."""
    known = sized(profile(**(WORKS | {"b": "cpu 10"})), a=4 * MB, b=4 * MB)
    node = platform(rpc_ms=2.0, paths=ALL, one_node=True, cpus=2)
    assert latency_ms(plan("c", "a", "b"), PAIR, known, node) == 1 + 10 + 1 + 4 + 2


def test_through_the_gateway_each_goes_by_itself(place, profile):
    """Back home from b, 8 ms for 4 MB, nothing waits for what a sends from the same wrap."""
    known = sized(profile(**(WORKS | {"b": "block 10"})), a=4 * MB, b=4 * MB)
    made = plan("c", "ba", cpus=2, path="gateway")
    assert latency_ms(made, PAIR, known, place) == 10 + 10 + 16 + 2
    made = plan("c", "a", "b", cpus=2, path="gateway")
    assert latency_ms(made, PAIR, known, place) == 10 + 10 + 8 + 2


def test_sending_keeps_a_core_of_the_sender_busy(place, profile):
    """a's 8 MB leave its only core half to b: 4 ms of sending and 4 of b take 8."""
    workflow = Workflow("demo", (*CHAIN.tasks[:2], Task("c", "c", "a")), ("b", "c"))
    known = sized(profile(**(WORKS | {"a": "block 10", "c": "block 0"})), a=8 * MB)
    ahead = place.model_copy(update={"paths": {"direct": PathCost(ms=0.0, ms_per_mb=0.5)}})
    assert latency_ms(plan("ab", "c", cpus=1), workflow, known, ahead) == 10 + 8 + 1
    assert latency_ms(plan("ab", "c", cpus=2), workflow, known, ahead) == 10 + 4 + 1


@pytest.mark.parametrize(("trigger", "expected_ms"), [("data", 10 + 4), ("stage", 12 + 1 + 4)])
def test_with_stages_wraps_are_told_of_ends_whose_objects_they_do_not_need(
    place, profile, trigger, expected_ms
):
    """b needs a alone; d, beside a in another wrap, ends after 1 + 11, and nobody needs its MB."""
    tasks = (Task("a", "a", None), Task("d", "d", None), Task("b", "b", "a"))
    known = sized(profile(**WORKS, d="cpu 11"), d=100 * MB)
    made = plan("ab", "d", trigger=trigger)
    assert latency_ms(made, Workflow("demo", tasks, "b"), known, place) == expected_ms


def test_where_no_path_is_known_objects_cost_nothing_but_calls(platform, profile):
    known = sized(profile(**WORKS), a=4 * MB, b=2 * MB)
    made = plan("c", "a", "b")
    assert latency_ms(made, CHAIN, known, platform(rpc_ms=2.0)) == 12 + 6 + 2
    only_gateway = platform(rpc_ms=2.0, paths={"gateway": PathCost(ms=1.0, ms_per_mb=0.0)})
    assert latency_ms(made, CHAIN, known, only_gateway) == 12 + 6 + 2


def test_a_path_that_is_not_possible_is_refused(platform, profile):
    without = platform(paths={"direct": DIRECT, "gateway": GATEWAY})
    with pytest.raises(ChironError, match="what the path store costs, but direct and gateway"):
        predict(plan("c", "ab", path="store"), PAIR, profile(**WORKS), without)


def test_a_workflow_that_decides_is_called_over_direct_connections(place, profile):
    """What its tasks get and give goes there and back with the calls."""
    did = Workflow("demo", (Task("a#1", "a", None), Task("b#1", "b", "a#1")), "b#1", decided=True)
    known = sized(profile(**WORKS), request=2 * MB, a=4 * MB, b=6 * MB)
    made = plan(["b#1"], ["a#1"])
    assert latency_ms(made, did, known, place) == (2 + 1 + 10 + 2) + 4


def test_what_crosses_is_named_with_what_it_takes(place, profile):
    known = sized(profile(**WORKS), a=4 * MB, b=2 * MB)
    for path, times_ms in (("auto", [3, 2]), ("gateway", [26, 9]), ("store", [12, 10])):
        found = list(crossings(plan("c", "a", "b", path=path), CHAIN, known, place))
        assert [(each.task, each.source, each.target) for each in found] == [
            ("a", 1, 2),
            ("b", 2, 0),
        ]
        assert [each.ms for each in found] == times_ms


def test_the_time_on_the_way_is_network_in_the_timeline(place, profile):
    known = sized(profile(**WORKS), a=4 * MB, b=2 * MB)
    timeline, steps = plan_timeline(plan("c", "a", "b"), CHAIN, Predictor(known, place))
    assert [step.network_ms for step in steps] == [1, 3, 2]
    ways = [(each.wrap, each.duration_ms) for each in timeline.of_kind("transfer")]
    assert ways == [("w1", 1), ("w2", 1), ("w2", 3), ("w0", 2)]
    assert timeline.latency_ms == 22


def test_the_range_has_the_spread_of_what_a_path_costs(platform, profile):
    cost = {"ms": 1.0, "ms_per_mb": 0.5, "spread": {"ms": (0.5, 2.0), "ms_per_mb": (0.25, 1.5)}}
    direct = PathCost.model_validate(cost)
    place = platform(rpc_ms=2.0, paths={"direct": direct}, spread={"rpc_ms": (2.0, 2.0)})
    known = sized(profile(**WORKS), a=4 * MB)
    found = predict(plan("bc", "a"), CHAIN, known, place)
    assert found.latency_ms == 1 + 10 + 1 + 2 + 4 + 2
    assert (found.low_ms, found.high_ms) == (20 - 0.5 - 1, 20 + 1 + 4)

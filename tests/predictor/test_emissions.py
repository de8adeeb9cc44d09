"""What takes an output begins when it is emitted, and not when its producer has ended."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import product
from typing import Any

import pytest
from by_hand import plan as plan_by_hand

from chiron.predictor.explain import explain
from chiron.predictor.plan_timeline import plan_timeline
from chiron.predictor.predict import Predictor
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Task, Workflow
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Emission, Profile
from tests.rows import each_row

#: b takes what a emits, c what a answers, d what b and c answer.
WORKFLOW = Workflow(
    "demo",
    (Task("a", "a", None), Task("b", "b", "a#x"), Task("c", "c", "a"), Task("d", "d", ("b", "c"))),
    "d",
)
FUNCTIONS = {"a": "block 16 cpu 4", "b": "block 30", "c": "block 5", "d": "block 1"}

Make = Callable[..., Any]
plan = partial(plan_by_hand, mechanism="pool", trigger="data")


def known(profile: Make, after: float | None, functions: dict[str, str] = FUNCTIONS) -> Profile:
    """`after` is when a emits, as a part of its latency; None for never."""
    made: Profile = profile(**functions)
    emits = {} if after is None else {"x": Emission(after=after, bytes=1_000_000)}
    a = made.functions["a"].model_copy(update={"emits": emits})
    return made.model_copy(update={"functions": made.functions | {"a": a}})


LAYOUTS = ([["abcd"]], [["acd", "b"]], [["a", "bcd"]], [["acd"], ["b"]])


@each_row(
    ("after", "wraps", "mechanism"),
    product((0.0, 0.1, 0.2, 0.6, 1.0), LAYOUTS, ("fork", "pool")),
)
def test_the_consumer_begins_when_its_input_is_emitted(
    after: float, wraps: list[list[str]], mechanism: str, platform: Make, profile: Make
) -> None:
    predictor = Predictor(known(profile, after), platform())
    made = plan(wraps, mechanism=mechanism)
    assert predictor.plan_ms(made, WORKFLOW) == pytest.approx(20 * after + 30 + 1)


def test_with_stages_it_waits_for_the_producers_end(platform: Make, profile: Make) -> None:
    predictor = Predictor(known(profile, 0.2), platform())
    assert predictor.plan_ms(plan([["abcd"]], trigger="stage"), WORKFLOW) == 20 + 30 + 1


def test_the_producer_goes_on_beside_its_consumer(platform: Make, profile: Make) -> None:
    """In one process both want the GIL: a from 0 to 8 and b from 2 to 8, by turns."""
    functions = {"a": "cpu 5", "b": "cpu 3", "c": "block 1", "d": "block 1"}
    predictor = Predictor(known(profile, 0.4, functions), platform())
    assert predictor.plan_ms(plan([["abcd"]]), WORKFLOW) == 8 + 1 + 1


def test_the_parts_of_the_steps_add_up_to_the_latency(platform: Make, profile: Make) -> None:
    predictor = Predictor(known(profile, 0.6), platform(request_ms=1.0, ipc_ms=0.5))
    made = plan([["acd", "b"]])
    timeline, tasks = plan_timeline(made, WORKFLOW, predictor)
    steps = explain(timeline, tasks)
    assert [step.task for step in steps] == ["a", "b", "d"]
    assert steps[0].parts.computing_ms + steps[0].parts.blocked_ms == pytest.approx(12.0)
    whole_ms = timeline.arrived_ms + sum(step.latency_ms for step in steps)
    assert whole_ms == pytest.approx(predictor.plan_ms(made, WORKFLOW))


def test_what_is_emitted_has_a_size_of_its_own(platform: Make, profile: Make) -> None:
    paths = {"gateway": {"ms": 0.0, "ms_per_mb": 0.0}, "direct": {"ms": 0.0, "ms_per_mb": 3.0}}
    place: Platform = platform(paths=paths)
    predictor = Predictor(known(profile, 0.6), place)
    assert predictor.plan_ms(plan([["acd"], ["b"]]), WORKFLOW) == 12 + 3 + 30 + 1


def test_a_profile_that_knows_nothing_of_it_is_refused(platform: Make, profile: Make) -> None:
    with pytest.raises(ChironError) as error:
        Predictor(known(profile, None), platform()).plan_ms(plan([["abcd"]]), WORKFLOW)
    assert error.value.code == "no-emission"

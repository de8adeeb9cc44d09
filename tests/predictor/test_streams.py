"""What reads a stream runs beside what writes it, and ends after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Any

import pytest
from by_hand import plan as plan_by_hand

from chiron.predictor.explain import explain
from chiron.predictor.plan_timeline import plan_timeline
from chiron.predictor.predict import Predictor
from chiron.workflow.model import NOTHING, Stream, Task, Workflow
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: b reads what a writes, d gets what b answers, and c what a answers as a whole.
WORKFLOW = Workflow(
    "demo",
    (
        Task("a", "a", None),
        Task("b", "b", NOTHING, (Stream("a", "a"),)),
        Task("c", "c", "a"),
        Task("d", "d", ("b", "c")),
    ),
    "d",
)
#: All of it in one process, in two, with the reader in another wrap, and all by themselves.
PLACES = [[["abcd"]], [["acd", "b"]], [["a", "bcd"]], [["acd"], ["b"]], [["a"], ["b"], ["cd"]]]

BLOCKING = {"a": "block 20", "b": "block 10", "c": "block 1", "d": "block 1"}

Make = Callable[..., Any]
plan = partial(plan_by_hand, mechanism="pool", trigger="data")


def known(
    profile: Make,
    functions: dict[str, str],
    size_bytes: int = 1 << 16,
    writes_from: float | None = 0.0,
    reads: tuple[float, float] = (0.0, 0.9),
) -> Profile:
    made: Profile = profile(**functions)
    a = {"output_bytes": size_bytes, "writes_from": writes_from}
    b = {"reads_from": reads[0], "reads_until": reads[1]}
    changed = {
        "a": made.functions["a"].model_copy(update=a),
        "b": made.functions["b"].model_copy(update=b),
    }
    return made.model_copy(update={"functions": made.functions | changed})


@pytest.fixture
def connected(platform: Make) -> Make:
    """A platform whose wraps have connections to each other."""

    def connected(ms: float = 0.0, ms_per_mb: float = 0.0, **constants: Any) -> Platform:
        paths = {"direct": {"ms": ms, "ms_per_mb": ms_per_mb}, "gateway": {"ms": 9, "ms_per_mb": 9}}
        made: Platform = platform(paths=paths, **constants)
        return made

    return connected


def test_where_runs_are_decided_a_stream_ends_as_ever(profile: Make, connected: Make) -> None:
    """What is computed for a run is not computed for what it emits or awaits."""
    decided = replace(WORKFLOW, decided=True)
    predictor = Predictor(known(profile, BLOCKING), connected(instance_ms=1.0))
    assert predictor.plan_ms(plan(PLACES[2]), decided) > predictor.plan_ms(
        plan(PLACES[2]), WORKFLOW
    )


@pytest.mark.parametrize("wraps", PLACES)
@pytest.mark.parametrize("mechanism", ["fork", "pool"])
@pytest.mark.parametrize(
    ("a", "b", "ends_ms"),
    [
        ("block 20", "block 10", 20 + 1),  # what is left when the writer has ended
        ("block 10", "block 20", 20),
        ("block 20", "block 20", 22),
        ("native 20", "native 10", 21),
    ],
)
def test_both_run_at_once_but_for_the_last_piece(
    a: str, b: str, ends_ms: float, wraps: Any, mechanism: str, connected: Make, profile: Make
) -> None:
    predictor = Predictor(
        known(profile, {"a": a, "b": b, "c": "block 1", "d": "block 1"}), connected()
    )
    assert predictor.plan_ms(plan(wraps, mechanism=mechanism), WORKFLOW) == pytest.approx(
        ends_ms + 1
    )


@pytest.mark.parametrize("wraps", PLACES)
def test_what_is_given_at_once_at_the_end_is_read_then(
    wraps: list[list[str]], connected: Make, profile: Make
) -> None:
    """The reader has done by then what it does before it reads."""
    made = known(profile, BLOCKING, writes_from=None, reads=(0.4, 0.9))
    assert Predictor(made, connected()).plan_ms(plan(wraps), WORKFLOW) == 20 + 6 + 1


def test_a_slow_reader_holds_its_writer_up_by_more_than_is_buffered(
    connected: Make, profile: Make
) -> None:
    """c gets what a has written as a whole: when b has taken all but the last fifth of it."""
    functions = {"a": "block 10", "b": "block 50", "c": "block 100", "d": "block 1"}
    made = known(profile, functions, size_bytes=1_000_000, reads=(0.0, 1.0))
    held_up = Predictor(made, connected()).plan_ms(plan([["abcd"]]), WORKFLOW)
    assert held_up == pytest.approx(40 + 2 + 100 + 1)
    made = known(profile, functions, size_bytes=100_000, reads=(0.0, 1.0))
    assert Predictor(made, connected()).plan_ms(plan([["abcd"]]), WORKFLOW) == 10 + 100 + 1


def test_with_stages_and_without_connections_it_begins_with_the_writers_end(
    platform: Make, connected: Make, profile: Make
) -> None:
    made = known(profile, BLOCKING)
    in_stages = Predictor(made, connected()).plan_ms(plan([["abcd"]], trigger="stage"), WORKFLOW)
    by_calls = Predictor(made, platform()).plan_ms(plan([["acd"], ["b"]]), WORKFLOW)
    assert in_stages == by_calls == 20 + 10 + 1


def test_in_one_process_both_compute_in_turn(connected: Make, profile: Make) -> None:
    functions = {"a": "cpu 20", "b": "cpu 10", "c": "block 1", "d": "block 1"}
    predictor = Predictor(known(profile, functions), connected())
    assert predictor.plan_ms(plan([["abcd"]]), WORKFLOW) == 30 + 1 + 1
    assert predictor.plan_ms(plan([["acd", "b"]]), WORKFLOW) == 21 + 1


def test_both_ends_compute_what_goes_through(connected: Make, profile: Make) -> None:
    """Between wraps, which have cores of their own; a is kept for c."""
    functions = {"a": "native 20", "b": "native 20", "c": "block 1", "d": "block 1"}
    made = known(profile, functions, size_bytes=2_000_000, reads=(0.0, 1.0))
    place = connected(ms=0.5, ms_per_mb=3.0, shared_ms_per_mb=1.0)
    within = Predictor(made, place).plan_ms(plan([["acd", "b"]]), WORKFLOW)
    assert within == pytest.approx(20 + 6 + 1 + 1)
    across = Predictor(made, place).plan_ms(plan([["acd"], ["b"]]), WORKFLOW)
    assert across == pytest.approx(0.5 + 20 + 6 + 0.5 + 1 + 1)


def test_to_send_to_one_reader_takes_as_long_as_to_keep_it_did(
    connected: Make, profile: Make
) -> None:
    """Both b and c read what a writes, and it is kept for nobody."""
    functions = {"a": "native 20", "b": "native 1", "c": "native 1", "d": "block 1"}
    made = known(profile, functions, size_bytes=2_000_000, reads=(0.0, 1.0))
    tasks = {"c": Task("c", "b", NOTHING, (Stream("a", "a"),)), "d": Task("d", "d", "b")}
    predictor = Predictor(made, connected(ms_per_mb=3.0))

    def ends_ms(both: bool) -> float:
        known_tasks = (tasks.get(task.name, task) for task in WORKFLOW.tasks)
        left = [task for task in known_tasks if both or task.name != "c"]
        wraps = plan([["a"], ["bd"], ["c"]] if both else [["a"], ["bd"]])
        return predictor.plan_ms(wraps, Workflow("demo", tuple(left), "d"))

    assert ends_ms(both=False) == pytest.approx(20 + 1)
    assert ends_ms(both=True) == pytest.approx(20 + 6 + 1)


def test_the_parts_of_the_steps_add_up_to_the_latency(connected: Make, profile: Make) -> None:
    """The reader's wait for its writer is a part of its own."""
    predictor = Predictor(known(profile, BLOCKING), connected(ms=0.5, request_ms=1.0))
    made = plan([["acd"], ["b"]])
    timeline, tasks = plan_timeline(made, WORKFLOW, predictor)
    steps = explain(timeline, tasks)
    assert [step.task for step in steps] == ["b", "d"]
    assert steps[0].parts.blocked_ms > 20
    whole_ms = timeline.arrived_ms + sum(step.latency_ms for step in steps)
    assert whole_ms == pytest.approx(predictor.plan_ms(made, WORKFLOW))

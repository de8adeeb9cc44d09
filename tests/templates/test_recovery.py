"""How much begins again when a wrap or a process of an execution is lost."""

from __future__ import annotations

import pytest
from wrap.core.dag import Engine
from wrap.core.program import MAIN
from wrap.core.recovery import tasks_to_rerun
from wrap.core.wrap_spec import Wrap

from tests.rows import each_row
from tests.templates.clusters import NAMES

CHAIN: dict[int, list[int]] = {0: [], 1: [0], 2: [1]}
HERE: dict[str, set[int]] = {"home": set()}


@each_row(
    ("needs", "wraps", "takers", "has", "runs", "begin"),
    [
        # What has reached all its consumers is not run again.
        (CHAIN, "ffh", ["", "h", ""], {"home": {1}}, {"home": {2}}, {}),
        (CHAIN, "ffh", ["", "h", ""], HERE, {"home": {2}}, {"far": {0, 1}}),
        # Producers that have ended and kept nothing run again.
        (CHAIN, "nfh", ["f", "h", ""], HERE, {"home": {2}}, {"far": {1}, "near": {0}}),
        (
            CHAIN,
            "nfh",
            ["f", "h", ""],
            HERE | {"near": {0}},
            {"home": {2}, "near": {0}},
            {"far": {1}},
        ),
        # One that runs less than is needed begins again with all of it.
        (
            {0: [], 1: [], 2: [0], 3: [1, 2]},
            *("nnfh", ["f", "h", "h", ""]),
            *(HERE | {"near": set()}, {"home": {3}, "near": {1}}, {"far": {2}, "near": {0, 1}}),
        ),
    ],
)
def test_as_much_begins_again_as_is_needed(needs, wraps, takers, has, runs, begin):
    names = {name[0]: name for name in NAMES}
    wrap_of = {task: names[initial] for task, initial in enumerate(wraps)}
    taken = {task: [names[each] for each in by] for task, by in enumerate(takers)}
    wanted = {len(wraps) - 1}
    found = tasks_to_rerun("far", wrap_of, needs.__getitem__, taken, has, runs, wanted, "home")
    assert found.begin == begin


@pytest.mark.parametrize("held", [{0}, set[int]()])
def test_a_process_gets_again_what_it_lost_and_only_that(held: set[int]) -> None:
    """0, 1 and 2 follow each other in process 1; 1 has not answered, and 0 may be here."""
    wrap = Wrap(
        "test", "w", "pool", {"f": "flask"}, {0: "f", 1: "f", 2: "f"}, [[], [0, 1, 2]],
        {0: None, 1: 0, 2: [0, 1]}, [([], [0]), ([0], [1]), ([0, 1], [2])], 1.0,
    )  # fmt: skip
    engine = Engine(wrap.share_of(frozenset(wrap.tasks), frozenset({2})))
    engine.start()
    engine.ended(0)
    call = engine.again(1, {1, 2}, held | {None})
    assert call.tasks == ((1, 2) if held else (0, 1, 2))
    assert set(call.needs) == ({0} if held else {None})
    assert call.gives == {2}
    assert call.place == 1 != MAIN

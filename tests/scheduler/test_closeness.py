"""What is handed on in megabytes stays in a wrap where its path is dear."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chiron.scheduler.choices import Choices
from chiron.scheduler.closeness import closer
from chiron.scheduler.folder_settings import FolderSettings
from chiron.scheduler.schedule import schedule
from chiron.workflow.constraints import Constraints
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Source, Task, Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import PathCost
from chiron.workflow.profile import Profile

MB = 1_000_000
#: Two chains beside each other, each of which hands on megabytes; e has the answer.
CHAINS: dict[str, Source] = {"a": None, "b": None, "c": "a", "d": "b", "e": ("c", "d")}
CHEAP, DEAR = PathCost(ms=0.1, ms_per_mb=0.01), PathCost(ms=0.1, ms_per_mb=10.0)


def made_of(sources: dict[str, Source], output: str) -> Workflow:
    return Workflow("demo", tuple(Task(t, t, source) for t, source in sources.items()), output)


@pytest.fixture
def heavy(profile) -> Callable[..., Profile]:
    """Functions that compute for 20 ms each, and give so many megabytes."""

    def heavy(names: str, **megabytes: float) -> Profile:
        known = profile(**dict.fromkeys(names, "cpu 20"))
        functions = {
            name: each.model_copy(update={"output_bytes": int(megabytes.get(name, 0) * MB)})
            for name, each in known.functions.items()
        }
        return known.model_copy(update={"functions": functions})

    return heavy


def places(plan: Plan) -> dict[str, str]:
    return {task: wrap.name for wrap in plan.wraps for task in wrap.tasks}


@pytest.mark.parametrize(("cost", "wraps"), [(CHEAP, 2), (DEAR, 1)])
def test_tasks_that_hand_on_much_share_a_wrap_unless_the_path_is_cheap(
    platform, heavy, cost, wraps
):
    """A second core saves one of the chains 40 ms; what it gives has to cross all the same."""
    place = platform(cpus=1, rpc_ms=0.2, invoke_ms=0.0, paths={"direct": cost, "gateway": cost})
    known = heavy("abcde", a=6, b=6, c=6, d=6)
    plan = schedule(made_of(CHAINS, "e"), known, place, 1000, Choices(strategy="latency"))
    assert len(plan.wraps) == wraps


def test_each_chain_stays_in_the_wrap_that_it_began_in(platform, heavy):
    """Whatever the order in which the tasks are told."""
    place = platform(cpus=1, rpc_ms=0.2, invoke_ms=0.0, paths={"direct": DEAR, "gateway": DEAR})
    crossed: dict[str, Source] = {"a": None, "b": None, "c": "b", "d": "a", "e": ("c", "d")}
    known = heavy("abcde", a=1.5, b=1.5)
    plan = schedule(made_of(crossed, "e"), known, place, 1000, Choices(strategy="latency"))
    where = places(plan)
    assert len(plan.wraps) == 2
    assert where["a"] == where["d"] != where["b"] == where["c"]


def test_functions_that_may_share_no_wrap_do_not_whatever_they_hand_on(platform, heavy):
    place = platform(rpc_ms=0.2, paths={"direct": DEAR, "gateway": DEAR})
    known = heavy("abcde", a=9, c=9)
    apart = FolderSettings(Constraints(format=1, isolate={"a": "wrap"}))
    plan = schedule(made_of(CHAINS, "e"), known, place, 1000, Choices(), apart)
    assert [wrap.tasks for wrap in plan.wraps if "a" in wrap.tasks] == [("a",)]


def test_why_says_what_crosses_between_which_wraps(platform, heavy):
    place = platform(cpus=1, rpc_ms=0.2, invoke_ms=0.0, paths={"direct": CHEAP, "gateway": DEAR})
    wide: dict[str, Source] = {**dict.fromkeys("abcdef", None), "g": tuple("abcdef")}

    def lines(**choices: Any) -> list[str]:
        chosen = Choices(planner="faastlane+", **choices)
        plan = schedule(made_of(wide, "g"), heavy("abcdefg", f=4), place, 1000, chosen)
        return [line for line in plan.why if " MB of " in line]

    wraps = "demo-faastlane-plus-wrap2 to demo-faastlane-plus-wrap1"
    assert lines() == [f"{wraps}: 4 MB of f directly, 0.1 ms in all"]
    assert lines(path="gateway") == [f"{wraps}: 4 MB of f through the gateway, 40.1 ms in all"]


def test_why_has_nothing_of_paths_where_no_cost_is_known(platform, heavy):
    plan = schedule(made_of(CHAINS, "e"), heavy("abcde", a=4), platform(), 1000)
    assert not [line for line in plan.why if " MB of " in line]


def test_a_plan_by_a_store_has_to_know_what_that_costs(platform, heavy):
    place = platform(paths={"direct": CHEAP, "gateway": DEAR})
    with pytest.raises(ChironError, match="does not say what the path store costs"):
        schedule(made_of(CHAINS, "e"), heavy("abcde"), place, 1000, Choices(path="store"))
    place = platform(paths={"gateway": DEAR, "store": CHEAP})
    plan = schedule(made_of(CHAINS, "e"), heavy("abcde"), place, 1000, Choices(path="store"))
    assert plan.path == "store"


@st.composite
def layouts(draw: st.DrawFn) -> tuple[Workflow, Any]:
    """A workflow, and its tasks in processes of up to three wraps at random."""
    sources: dict[str, Source] = {}
    for name in "abcdefgh"[: draw(st.integers(1, 8))]:
        known = sorted(sources)
        needed = draw(st.lists(st.sampled_from(known), unique=True, max_size=2)) if known else []
        sources[name] = tuple(needed) or None
    workflow = made_of(sources, "a")
    layout = []
    for stage in workflow.stages:
        wraps: list[list[tuple[str, ...]]] = [[], [], []]
        for task in stage:
            wraps[draw(st.integers(0, 2))].append((task,))
        layout.append(tuple(map(tuple, wraps)))
    used = [any(stage[w] for stage in layout) for w in range(3)]
    kept = (tuple(p for p, some in zip(stage, used, strict=True) if some) for stage in layout)
    return workflow, tuple(kept)


@given(layouts(), st.dictionaries(st.sampled_from("abcdefgh"), st.integers(0, 9)))
def test_no_more_has_to_cross_and_no_wrap_has_to_run_more_at_once(drawn, some):
    workflow, layout = drawn
    sizes = dict.fromkeys("abcdefgh", 1) | some
    found = closer(layout, workflow, sizes, lambda _: 0)
    for before, after in zip(layout, found, strict=True):
        assert sorted(p for wrap in before for p in wrap) == sorted(
            p for wrap in after for p in wrap
        )
    assert _crossing(found, workflow, sizes) <= _crossing(layout, workflow, sizes)
    assert max(_widths(found)) <= max(_widths(layout))
    assert sum(_widths(found)) <= sum(_widths(layout))


def _widths(layout: Any) -> list[int]:
    """How many processes each wrap runs in a stage at most."""
    return [max(map(len, wrap)) for wrap in zip(*layout, strict=True)]


def _crossing(layout: Any, workflow: Workflow, sizes: dict[str, int]) -> int:
    wrap_of = {t: w for stage in layout for w, ps in enumerate(stage) for p in ps for t in p}
    total = 0
    for task, wrap in wrap_of.items():
        targets = {wrap_of[other.name] for other in workflow.tasks if task in other.predecessors}
        targets |= {0} if task == workflow.output else set()
        total += sizes[task] * len(targets - {wrap})
    return total

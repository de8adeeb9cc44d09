"""What paths cost is found again from plans of no-ops, and whether wraps reach each other."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from chiron.deployment.invoke import Answer
from chiron.deployment.launcher import Deployment
from chiron.predictor.predict import Predictor
from chiron.profiler.known_work import NOTHING, PAUSE
from chiron.profiler.noop_handler import LARGE, LARGE_MB
from chiron.profiler.noop_shapes import FUNCTIONS, Shape
from chiron.profiler.path_costs import path_costs, path_shapes
from chiron.workflow.errors import ChironError
from chiron.workflow.paths import Path, PathKind
from chiron.workflow.platform import PathCost, Platform
from chiron.workflow.profile import Profile

BY_PATH: dict[Path, PathCost] = {
    "direct": PathCost(ms=0.4, ms_per_mb=0.8),
    "gateway": PathCost(ms=1.4, ms_per_mb=2.5),
    "store": PathCost(ms=2.0, ms_per_mb=3.0),
}


@dataclass
class Predicted:
    """A plan that takes what is predicted on a platform, and counts requests as gateways do."""

    shape: Shape
    place: Platform
    counts: bool = True
    requests: dict[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(wrap.name for wrap in self.shape.plan.wraps)

    @property
    def gateway(self) -> Any:
        found = [
            SimpleNamespace(name=name, invocation_count=self.requests.get(name, 0.0))
            for name in self.names
        ]
        return SimpleNamespace(functions=lambda: found)

    def invoke(self, request: bytes) -> Answer:
        straight = "direct" in self.place.paths and self.shape.plan.path == "auto"
        if self.counts:
            for name in self.names[: 1 if straight else None]:
                self.requests[name] = self.requests.get(name, 0.0) + 1
        known = PAUSE if request == PAUSE.request else NOTHING
        profile = known.profile({})
        if request == LARGE.encode():
            first = profile.functions[FUNCTIONS[0]]
            large = first.model_copy(update={"output_bytes": LARGE_MB * 1_000_000})
            profile = _with(profile, large)
        predictor = Predictor(profile, self.place)
        return Answer("", predictor.plan_ms(self.shape.plan, self.shape.workflow))


def _with(profile: Profile, first: Any) -> Profile:
    return profile.model_copy(update={"functions": profile.functions | {FUNCTIONS[0]: first}})


def found_on(place: Platform, *paths: PathKind, counts: bool = True) -> dict[Path, PathCost]:
    deployed = {
        name: cast(Deployment, Predicted(shape, place, counts))
        for name, shape in path_shapes(paths).items()
    }
    return path_costs(deployed, 40)


@pytest.fixture
def place(monkeypatch: pytest.MonkeyPatch) -> Platform:
    monkeypatch.setattr("chiron.profiler.path_costs.mean_probe_ms", lambda: 1.0)
    constants = (
        "ipc_ms process_startup_ms process_block_ms pool_dispatch_ms switch_cost_ms invoke_ms"
    )
    free = dict.fromkeys(constants.split(), 0.0)
    known = {"format": 1, "name": "known", "cpus": 8, "thread_startup_ms": 0.05}
    return Platform.model_validate(
        {**known, **free, "request_ms": 2.0, "stage_ms": 0.3, "rpc_ms": 0.8, "paths": BY_PATH}
    )


def test_what_paths_cost_is_found_again(place: Platform) -> None:
    found = found_on(place, "auto", "gateway", "store")
    assert found.keys() == BY_PATH.keys()
    for path, cost in found.items():
        for each in (cost, cost.at_end(0), cost.at_end(1)):
            assert each.ms == pytest.approx(BY_PATH[path].ms, abs=0.001)
            assert each.ms_per_mb == pytest.approx(BY_PATH[path].ms_per_mb, abs=0.001)


@pytest.mark.parametrize("counts", [True, False])
def test_wraps_that_reach_each_other_by_the_gateway_alone_have_no_direct_path(
    place: Platform, counts: bool
) -> None:
    """Whether the gateway counts requests or not."""
    alone = place.model_copy(update={"rpc_ms": 2.8, "paths": {"gateway": BY_PATH["gateway"]}})
    assert found_on(alone, "auto", "gateway", counts=counts).keys() == {"gateway"}
    assert found_on(place, "auto", "gateway", counts=counts).keys() == {"direct", "gateway"}


def test_an_answer_of_something_else_is_no_measurement(place: Platform) -> None:
    class Other(Predicted):
        def invoke(self, request: bytes) -> Answer:
            return Answer("something else", 1.0)

    deployed = {
        name: cast(Deployment, Other(shape, place))
        for name, shape in path_shapes(("auto", "gateway")).items()
    }
    with pytest.raises(ChironError, match="deploy chiron's template"):
        path_costs(deployed, 40)


def test_plans_of_each_path_are_sound_and_say_it() -> None:
    shapes = path_shapes(("auto", "gateway", "store"))
    for shape in shapes.values():
        shape.plan.check_against(shape.workflow)
    assert [shape.plan.path for shape in shapes.values()] == ["auto", "auto", "gateway", "store"]
    assert len({wrap.name for shape in shapes.values() for wrap in shape.plan.wraps}) == 7

"""A request in virtual time: the oracle of `chiron.predictor.wiring` and the kernel."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from engines import Engines
from straight import Straight

from chiron.predictor.emissions import expanded, known_with
from chiron.predictor.moments import Moment
from chiron.predictor.simulator import Span
from chiron.predictor.streams import streams_of
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile


def request_ms(
    plan: Plan,
    workflow: Workflow,
    profile: Profile,
    platform: Platform,
    record: Callable[[Span], None] | None = None,
) -> float:
    """When the client of one execution has its answer."""
    straight = plan.path == "auto" and plan.orchestrator == "wrap" and "direct" in platform.paths
    kind = Straight if straight and not workflow.decided else Engines
    moments = dict[str, tuple[str, tuple[Moment, ...]]]()

    def variant(function: str, its: Sequence[Moment]) -> str:
        moments[name := f"{function} {len(moments)}"] = function, tuple(its)
        return name

    profile, streams = known_with(profile), streams_of(plan, workflow, profile, platform)
    plan, workflow, flows = expanded(plan, workflow, profile, streams, variant)
    varied = {name: profile.functions[function] for name, (function, _) in moments.items()}
    profile = profile.model_copy(update={"functions": profile.functions | varied})
    engines = kind(plan, workflow, profile, platform, record)
    engines.moments = {name: its for name, (_, its) in moments.items()}
    engines.await_flows(flows)
    engines.simulation.run()
    assert engines.replied_ms is not None
    return engines.replied_ms

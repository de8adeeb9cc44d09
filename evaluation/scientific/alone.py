"""Measures the variants of one workflow in turn, without other workflows beside it."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from chiron.deployment.measure import checked_invoke, checked_payloads
from chiron.evaluation.bench.bench import DeployedVariant, Leftovers, deploy
from chiron.evaluation.bench.rounds import Measurement, Round, Session
from chiron.evaluation.bench.settings import Scale
from chiron.evaluation.bench.setup import PROFILE_FILE, Place, kept
from chiron.evaluation.bench.traffic import gateway_bytes, store_bytes
from chiron.evaluation.measurements.load import CLOSED
from chiron.evaluation.measurements.single import MEMORY, held
from chiron.evaluation.scientific.variants import (
    BASELINE,
    between_bytes,
    computing_ms,
    critical_path_ms,
    plans_of,
    unhindered_ms,
)
from chiron.generator.stores import NO_STORE, StorePlace
from chiron.predictor.unrolling import run_of
from chiron.profiler.profile import profile
from chiron.workflow.documents import Document
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Workflow
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

Part = Literal["alone", "load", "together"]
PLANS_FILE = "plans.json"
#: Seconds of a request, for the forecast.
_REQUEST_S = 0.4


class Turn(Document):
    """Latencies of requests in a row, and the mean use of a request; None if it is not visible.

    ``gateway_bytes`` counts requests and answers of the workflow, and of functions if the client
    calls them.
    """

    latencies_ms: tuple[float, ...]
    gateway_bytes: float | None = None
    store_bytes: float | None = None
    cpu_s: float | None = None


class Plans(Document):
    """The plans of one workflow by label of the variant, and reference figures of a request.

    The functions of the same names in `variants` define the figures. ``between_bytes`` is by
    variant.
    """

    stages: tuple[int, ...]
    critical_path_ms: float
    computing_ms: float
    unhindered_ms: float
    plans: dict[str, Plan]
    between_bytes: dict[str, int]


def profile_of(folder: WorkflowFolder, place: Place, out: Path, samples: int) -> Profile:
    """Return the profile stored in `out`, else profile the workflow by about `samples` runs."""
    return kept(
        out / PROFILE_FILE,
        Profile,
        lambda: profile(folder, place.launcher, samples=samples, progress=place.progress),
    )


def prepare(
    folder: WorkflowFolder, place: Place, out: Path, functions: Profile, nodes: int = 1
) -> Plans:
    """Return the plans stored in `out`, else plan the workflow in `folder`."""
    return kept(
        out / PLANS_FILE,
        Plans,
        lambda: _plans(folder.workflow, functions, place.platform, nodes),
    )


def _plans(workflow: Workflow, functions: Profile, platform: Platform, nodes: int) -> Plans:
    plans, run = plans_of(workflow, functions, platform, nodes), run_of(workflow, functions)
    between = {
        label: between_bytes(*run.placed(plan), run.profile) for label, plan in plans.items()
    }
    _, done = run.placed(plans[BASELINE])
    return Plans(
        stages=tuple(map(len, done.stages)),
        critical_path_ms=critical_path_ms(done, run.profile),
        computing_ms=computing_ms(done, run.profile),
        unhindered_ms=unhindered_ms(done, run.profile, platform.cpus),
        plans=plans,
        between_bytes=between,
    )


def measure(
    folder: WorkflowFolder,
    place: Place,
    out: Path,
    plans: Mapping[str, Plan],
    functions: Profile,
    scale: Scale,
    parts: Collection[Part],
) -> None:
    """Measure until the journals in `out` are complete; raises the errors of deploying.

    The journal of the load is among them if `parts` has ``load``.
    """
    store = place.launcher.store
    chosen: list[Measurement[Any]] = [turns(store), MEMORY, held(store)]
    if "load" in parts:
        chosen.append(CLOSED)
    missing = [m for m in chosen if m.missing(out, 0, scale, len(plans))]
    if not missing:
        return
    checked = checked_payloads(folder, functions, check=True)
    leftovers = Leftovers(out / "deployed.json")
    with (
        leftovers.removed_from(place.launcher.gateway),
        deploy(folder, place, plans, leftovers, checked) as bench,
    ):
        for measurement in missing:
            measurement.run(Session(bench, 0, scale, out), place.progress)


def _turn(store: StorePlace, session: Session, deployed: DeployedVariant) -> Turn:
    bench, deployment = session.bench, deployed.deployment

    def spent() -> tuple[float | None, ...]:
        used_s = deployed.meter.cpu_s() if deployed.meter else None
        return gateway_bytes(bench.url, deployment.names), store_bytes(store), used_s

    before, requests = spent(), bench.requests(session.round, session.scale.block)
    latencies = [checked_invoke(deployment, each.content, check) for each, check in requests]
    through_gateway, through_store, cpu_s = (
        None if now is None or then is None else round((now - then) / len(latencies), 4)
        for now, then in zip(spent(), before, strict=True)
    )
    return Turn(
        latencies_ms=tuple(round(ms, 3) for ms in latencies),
        gateway_bytes=through_gateway,
        store_bytes=through_store,
        cpu_s=cpu_s,
    )


def turns(store: StorePlace = NO_STORE) -> Measurement[Turn]:
    """Return the measurement of requests in turn, with bytes through the gateway and `store`."""
    return Measurement(
        "turns",
        Round[Turn],
        lambda scale: -(-scale.requests // scale.block),
        lambda scale, _: scale.requests_s,
        partial(_turn, store),
        lambda scale, variants: min(scale.requests_s, scale.requests * variants * _REQUEST_S),
    )

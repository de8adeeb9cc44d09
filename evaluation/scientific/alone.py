"""One workflow with nothing beside it: its variants in turn, request by request."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Literal

from chiron.deployment.measure import checked_invoke, checked_payloads
from chiron.evaluation.bench.bench import Leftovers, Placed, deploy
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
#: What a request takes, for the forecast.
_REQUEST_S = 0.4


class Turn(Document):
    """A few requests in a row, and what one of them used; None where that is not to be seen.

    ``gateway_bytes`` are those of requests and answers, of functions too where the client calls
    them.
    """

    latencies_ms: tuple[float, ...]
    gateway_bytes: float | None = None
    store_bytes: float | None = None
    cpu_s: float | None = None


class Plans(Document):
    """The plans of one workflow by the labels of their variants, and what they are held against.

    All of a request: see the functions of these names in `variants`; ``between_bytes`` is that of
    every variant.
    """

    stages: tuple[int, ...]
    critical_path_ms: float
    computing_ms: float
    unhindered_ms: float
    plans: dict[str, Plan]
    between_bytes: dict[str, int]


def profile_of(folder: WorkflowFolder, place: Place, out: Path, samples: int) -> Profile:
    """The profile of the workflow in `folder`, by about `samples` runs, unless `out` has it."""
    return kept(
        out / PROFILE_FILE,
        Profile,
        lambda: profile(folder, place.launcher, samples=samples, progress=place.progress),
    )


def prepare(
    folder: WorkflowFolder, place: Place, out: Path, functions: Profile, nodes: int = 1
) -> Plans:
    """The plans of the workflow in `folder`; what `out` already has of it is kept."""
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
    """Bring the journals in `out` to their full length; raises what deploying does.

    Those of the load are among them where it is in `parts`.
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


def _turn(store: StorePlace, session: Session, placed: Placed) -> Turn:
    bench, deployment = session.bench, placed.deployment

    def spent() -> tuple[float | None, ...]:
        used_s = placed.meter.cpu_s() if placed.meter else None
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
    """Requests of each variant in its turn, and what passes the gateway and `store` for them."""
    return Measurement(
        "turns",
        Round[Turn],
        lambda scale: -(-scale.requests // scale.block),
        lambda scale, _: scale.requests_s,
        partial(_turn, store),
        lambda scale, variants: min(scale.requests_s, scale.requests * variants * _REQUEST_S),
    )

"""Compares workflows at once with each alone, by a closed loop of one client for each workflow."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import NamedTuple

from chiron.deployment.measure import checked_payloads, weighted_cycle
from chiron.evaluation.bench.bench import Bench, Leftovers, deploy
from chiron.evaluation.bench.rounds import Journal
from chiron.evaluation.bench.setup import Place
from chiron.evaluation.measurements.client import client_of
from chiron.evaluation.measurements.load import ClosedSample, closed_loop
from chiron.workflow.documents import Document
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from chiron.workflow.profile import Profile


class TogetherRound(Document):
    """A window of every workflow alone, one after another, and a window of all at once."""

    variant: str
    alone: dict[str, ClosedSample]
    together: dict[str, ClosedSample]


class Neighbour(NamedTuple):
    """A workflow that is deployed beside others, its profile, and its plans by label."""

    folder: WorkflowFolder
    functions: Profile
    plans: Mapping[str, Plan]


def journal_in(out: Path) -> Journal[TogetherRound]:
    """Return the journal in the folder `out`."""
    return Journal(out / "together.jsonl", TogetherRound)


def measure_together(
    neighbours: Sequence[Neighbour],
    place: Place,
    out: Path,
    variants: Collection[str],
    rounds: int,
    seconds: float,
) -> None:
    """Measure until the journal in `out` has `rounds` of each variant, with windows of `seconds`.

    Variants are deployed one after another: eight times fifty functions are enough for a machine.
    """
    journal = journal_in(out)
    leftovers = Leftovers(out / "deployed.json")
    with leftovers.removed_from(place.launcher.gateway):
        for variant in variants:
            missing = rounds - sum(row.variant == variant for row in journal.rows())
            if missing <= 0:
                continue
            with _deployed(neighbours, place, variant, leftovers) as benches:
                for number in range(missing):
                    place.progress(f"{variant}: round {number + 1} of {missing}, alone and at once")
                    journal.append(_round(variant, benches, seconds))


@contextmanager
def _deployed(
    neighbours: Sequence[Neighbour], place: Place, variant: str, leftovers: Leftovers
) -> Iterator[dict[str, Bench]]:
    with ExitStack() as stack:
        yield {
            each.folder.workflow.name: stack.enter_context(
                deploy(
                    each.folder,
                    place,
                    {variant: each.plans[variant]},
                    leftovers,
                    checked_payloads(each.folder, each.functions, check=True),
                )
            )
            for each in neighbours
        }


def _round(variant: str, benches: Mapping[str, Bench], seconds: float) -> TogetherRound:
    async def window(bench: Bench) -> ClosedSample:
        (deployed,) = bench.deployed.values()
        route = deployed.deployment.invoker.route
        async with client_of(bench.url, route, weighted_cycle(bench.checked)) as client:
            return await closed_loop(client, 1, seconds, seconds)

    async def at_once() -> list[ClosedSample]:
        return await asyncio.gather(*map(window, benches.values()))

    return TogetherRound(
        variant=variant,
        alone={name: asyncio.run(window(bench)) for name, bench in benches.items()},
        together=dict(zip(benches, asyncio.run(at_once()), strict=True)),
    )

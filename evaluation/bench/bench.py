"""Deploys the variants of one workflow side by side, for the length of a ``with`` block."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from chiron.deployment.deploy import remove_all
from chiron.deployment.launcher import Deployment
from chiron.deployment.measure import CheckedPayload, warm_up, weighted_cycle
from chiron.evaluation.bench.setup import Place
from chiron.evaluation.bench.usage import OtherMeters, Sandboxes, meter, other_meters
from chiron.evaluation.bench.variants import apart
from chiron.openfaas.client import Gateway
from chiron.workflow.documents import read_json, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan

#: Codes of errors of the gateway or the whole workflow, not of one variant.
_FATAL = frozenset({"no-gateway", "unauthorised", "bad-gateway-url", "not-deployable"})


@dataclass(frozen=True)
class Leftovers:
    """The functions deployed now, listed in `file`, so that a run can clean up after a killed run.

    After a successful run there is no file.
    """

    file: Path

    @contextmanager
    def removed_from(self, gateway: Gateway) -> Iterator[None]:
        """Remove the functions left by an earlier run; delete the file after a successful block."""
        remove_all(gateway, self._noted())
        self.file.unlink(missing_ok=True)
        yield
        self.file.unlink(missing_ok=True)

    def note(self, names: Iterable[str]) -> None:
        """Add functions to the file before they are deployed."""
        write_atomically(self.file, json.dumps([*self._noted(), *names]))

    def _noted(self) -> list[str]:
        return list(map(str, read_json(self.file, "list"))) if self.file.exists() else []


class DeployedVariant(NamedTuple):
    """A deployed variant, after a warm-up whose answers were right."""

    plan: Plan
    deployment: Deployment
    #: None if this machine cannot see its sandboxes.
    meter: Sandboxes | None
    other_meters: OtherMeters


@dataclass(frozen=True)
class Bench:
    """The variants that answer behind the gateway at `url`, and why others were ``refused``.

    ``checked`` has the payloads of requests, each with the check of its answers.
    """

    url: str
    checked: Sequence[CheckedPayload]
    deployed: Mapping[str, DeployedVariant]
    refused: Mapping[str, str]

    @property
    def variants(self) -> int:
        """The number of variants, including the refused ones."""
        return len(self.deployed) + len(self.refused)

    def turns(self, number: int) -> list[tuple[str, DeployedVariant]]:
        """Return the variants in the order of round `number`: rotated, and reversed if even."""
        order = list(self.deployed.items())
        start = number % max(1, len(order))
        turned = order[start:] + order[:start]
        return turned if number % 2 else turned[::-1]

    def requests(self, number: int, count: int) -> list[CheckedPayload]:
        """Return the `count` requests per variant of round `number`; rounds continue the cycle."""
        return list(islice(weighted_cycle(self.checked), number * count, (number + 1) * count))


@contextmanager
def deploy(
    folder: WorkflowFolder,
    place: Place,
    plans: Mapping[str, Plan],
    leftovers: Leftovers,
    checked: Sequence[CheckedPayload],
) -> Iterator[Bench]:
    """Deploy `plans` side by side, listed in `leftovers`, and remove them after the block.

    A plan is left out if the gateway refuses it or its answers to the `checked` payloads are wrong.
    The bench has the reason.

    Raises the codes in `_FATAL`, and ``nothing-deployed`` if all plans are left out.
    """
    gateway = place.launcher.gateway
    launched: dict[str, tuple[Plan, Deployment]] = {}
    refused: dict[str, str] = {}
    with ExitStack() as stack:
        begin, done = time.perf_counter(), 0
        left = sum(len(plan.wraps) for plan in plans.values())
        for number, (label, plan) in enumerate(plans.items()):
            count = len(plan.wraps)
            rest_s = (time.perf_counter() - begin) * left / done if done else 0.0
            rest = f", about {rest_s:.0f} s left" if done else ""
            place.progress(f"deploying {label}: {count} function{'s' * (count > 1)}{rest}")
            done, left = done + count, left - count
            renamed = apart(plan, f"eval{number}")
            leftovers.note(wrap.name for wrap in renamed.wraps)
            try:
                launch = place.launcher.launch(folder.workflow, folder, renamed)
                launched[label] = renamed, stack.enter_context(launch)
            except ChironError as error:
                _keep_reason(error, label, refused, place)
        sources = place.launcher.sources(folder)
        deployed = {}
        for label, (plan, deployment) in launched.items():
            try:
                warm_up(deployment, checked, sources.warm_up_s)
            except ChironError as error:
                _keep_reason(error, label, refused, place)
            else:
                seen = meter(deployment.names, gateway.url)
                beside = other_meters(sources.supporting, gateway.url, seen)
                deployed[label] = DeployedVariant(plan, deployment, seen, beside)
        if not deployed and refused:
            label, reason = next(iter(refused.items()))
            message = f"nothing can be measured; {label}: {reason}"
            raise ChironError("nothing-deployed", message, status=502)
        yield Bench(gateway.url, checked, deployed, refused)


def _keep_reason(error: ChironError, label: str, refused: dict[str, str], place: Place) -> None:
    if error.code in _FATAL:
        raise error
    refused[label] = error.message
    place.progress(f"{label} is left out: {error.message}")

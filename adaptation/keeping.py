"""Keeps replica counts set by people and scalers when a new version replaces an old version."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from chiron.adaptation.events import Event, Tell
from chiron.adaptation.scaling import Bounds
from chiron.generator.given import given_of
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus

#: The period at which ready replicas are counted, in seconds.
_LOOK_S = 0.2


def replicas_set(before: FunctionStatus) -> int:
    """Return the replicas of a wrap if more than its own stack.yaml began with; else 0.

    A smaller or equal count comes from its plan: the next plan has its own count.
    """
    given = given_of(before.annotations)
    began = Bounds.of(given.labels if given else {}).least
    return before.replicas if before.replicas > began else 0


def keep_replicas(
    gateway: Gateway, before: Mapping[str, FunctionStatus], tell: Tell, within_s: float
) -> None:
    """Scale functions to the replicas set on those `before` them, and wait until they are ready.

    Functions with as many replicas stay unchanged. Functions not ready within `within_s` seconds
    cause an event.
    """
    wanted = dict[str, int]()
    for name, function in before.items():
        count = replicas_set(function)
        if gateway.describe(name).replicas < count:
            wanted[name] = count
            gateway.scale(name, count)
    until = time.monotonic() + within_s
    while missing := _missing(gateway, wanted):
        if time.monotonic() > until:
            message = f"{', '.join(missing)}: fewer replicas are ready than before"
            tell(Event("kept", message, {"functions": list(missing)}))
            return
        time.sleep(_LOOK_S)


def _missing(gateway: Gateway, wanted: Mapping[str, int]) -> Sequence[str]:
    """Return the functions with fewer ready replicas than wanted."""
    ready = {name: gateway.describe(name).available_replicas for name in wanted}
    return [name for name, count in wanted.items() if ready[name] < count]

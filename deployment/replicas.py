"""What the replicas of a wrap say of themselves, by their metrics, asked through the gateway."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.parser import text_string_to_metric_families

from openfaas.client import Gateway
from workflow.errors import ChironError

#: So many times for each replica is asked, as the gateway picks who answers.
_ASKED = 3
#: How long one may take to answer, in seconds, and how many may not until no more are asked.
_TIMEOUT_S, _SILENT = 0.5, 3
_METRICS = "/metrics"
_IN_HAND, _WAITING, _AT_ONCE, _PRESSURE, _INFO = (
    f"chiron_{name}"
    for name in (
        *("requests_in_hand", "requests_waiting", "requests_at_once"),
        *("pressure_seconds_total", "replica_info"),
    )
)


@dataclass(frozen=True)
class Said:
    """What a replica said, by its metrics, and when, in seconds of the monotonic clock.

    ``values`` are those of metrics without labels.
    """

    replica: str
    at: float
    values: Mapping[str, float]

    @classmethod
    def read(cls, text: str, at: float) -> Said | None:
        """None where these are not the metrics of a wrap."""
        try:
            families = list(text_string_to_metric_families(text))
        except ValueError:
            return None
        samples = [sample for family in families for sample in family.samples]
        values = {sample.name: sample.value for sample in samples if not sample.labels}
        names = [s.labels.get("replica", "") for s in samples if s.name == _INFO]
        if not names or not values.keys() >= {_IN_HAND, _WAITING, _AT_ONCE, _PRESSURE}:
            return None
        return cls(names[0], at, values)

    @property
    def in_hand(self) -> float:
        """Requests that it works on."""
        return self.values[_IN_HAND]

    @property
    def waiting(self) -> float:
        """Requests that wait there."""
        return self.values[_WAITING]

    @property
    def at_once(self) -> float:
        """How many requests it works on at most."""
        return self.values[_AT_ONCE]

    def pressure_since(self, before: Said) -> float:
        """The share of the time since `before` in which tasks were held back."""
        seconds = self.values[_PRESSURE] - before.values[_PRESSURE]
        return min(1.0, max(0.0, seconds / (self.at - before.at)))


@dataclass(frozen=True)
class Heard:
    """What replicas said, by their names, and how many of those asked did not answer."""

    said: Mapping[str, Said]
    silent: int = 0


def hear(gateway: Gateway, name: str, replicas: int) -> Heard:
    """What the `replicas` of the function `name` say: with many of them, a sample."""
    found = dict[str, Said]()
    silent = 0
    for _ in range(_ASKED * replicas):
        said = _ask(gateway, name)
        if said is None:
            silent += 1
        else:
            found[said.replica] = said
        if len(found) + silent >= replicas or silent >= _SILENT:
            break
    return Heard(found, silent)


def _ask(gateway: Gateway, name: str) -> Said | None:
    try:
        answer = gateway.get(name, _METRICS, _TIMEOUT_S)
    except ChironError:
        return None
    return Said.read(answer.text, time.monotonic()) if answer.ok else None

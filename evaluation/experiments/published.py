"""The paper's own figures and prices (Chiron §6.2); docs/evaluation.md says where they are from."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from chiron.scheduler.prices import PAPER_GHZ, USD_PER_GB_S, USD_PER_GHZ_S
from chiron.workflow.documents import read_json

#: What AWS Step Functions takes for each state transition, which one-to-one pays on top (§6.2).
USD_PER_TRANSITION = 0.000025
_FILE = Path(__file__).parent.parent / "data" / "published.json"
#: Our variants and what the paper calls the system of that kind.
_SYSTEMS = {
    "one-to-one": "one-to-one",
    "sand fork": "sand",
    "faastlane fork": "faastlane",
    "faastlane pool": "faastlane-pool",
    "pgp fork": "chiron",
    "pgp pool": "chiron-pool",
}


def published_value(workflow: str, label: str, metric: str) -> float | None:
    """What the paper reports; None where it has no such system, workflow or metric.

    Latency in milliseconds, memory in MB, throughput in requests per second that a 40-core node
    can hold by latency and CPUs, cost in USD per million requests, computed from the others.
    """
    systems = _published()["workflows"].get(_name(workflow), {})
    row: dict[str, float] = systems.get(_SYSTEMS.get(label, ""), {})
    if metric != "cost":
        return row.get(metric)
    if not {"latency", "cpus", "memory"} <= row.keys():
        return None
    return round(held_usd(row["latency"], row["cpus"], PAPER_GHZ, row["memory"]) * 1e6, 4)


def published_error(workflow: str, mechanism: str, predictor: str) -> float | None:
    """The mean prediction error that the paper reports, as a share."""
    errors = _published()["prediction_error_percent"]
    table = errors.get({"fork": "native"}.get(mechanism, mechanism), {})
    found: float | None = table.get(predictor, {}).get(_name(workflow))
    return None if found is None else found / 100


def source() -> str:
    """Where the figures are from."""
    return str(_published()["source"])


def _name(workflow: str) -> str:
    """The paper's name for a workflow of benchmarks/."""
    return "finra-5" if workflow == "finra" else workflow


def held_usd(latency_ms: float, cpus: float, ghz: float, memory_mib: float) -> float:
    """What one request costs that holds its CPUs and memory as long as it lasts."""
    seconds = latency_ms / 1000
    return seconds * (cpus * ghz * USD_PER_GHZ_S + _gb(memory_mib) * USD_PER_GB_S)


def used_usd(latency_ms: float, cpu_s: float, ghz: float, memory_mib: float) -> float:
    """The same with the CPU time that it really used."""
    return cpu_s * ghz * USD_PER_GHZ_S + latency_ms / 1000 * _gb(memory_mib) * USD_PER_GB_S


def _gb(mib: float) -> float:
    return mib * 2**20 / 1e9


@cache
def _published() -> Any:
    return read_json(_FILE, "published figures")

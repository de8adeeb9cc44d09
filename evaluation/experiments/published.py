"""The paper's own figures and prices (Chiron §6.2); docs/evaluation.md has their sources."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from chiron.scheduler.prices import PAPER_GHZ, USD_PER_GB_S, USD_PER_GHZ_S
from chiron.workflow.documents import read_json

#: The price of a state transition of AWS Step Functions, an extra cost of one-to-one (§6.2).
USD_PER_TRANSITION = 0.000025
_FILE = Path(__file__).parent.parent / "data" / "published.json"
#: Our variants, and the paper's names of systems of the same kind.
_SYSTEMS = {
    "one-to-one": "one-to-one",
    "sand fork": "sand",
    "faastlane fork": "faastlane",
    "faastlane pool": "faastlane-pool",
    "pgp fork": "chiron",
    "pgp pool": "chiron-pool",
}


def published_value(workflow: str, label: str, metric: str) -> float | None:
    """Return the paper's value; None if it lacks the system, the workflow or the metric.

    Latency is in milliseconds and memory in MB. Throughput is in requests per second of a 40-core
    node, by latency and CPUs. Cost is in USD per million requests, computed from the other metrics.
    """
    systems = _published()["workflows"].get(_name(workflow), {})
    row: dict[str, float] = systems.get(_SYSTEMS.get(label, ""), {})
    if metric != "cost":
        return row.get(metric)
    if not {"latency", "cpus", "memory"} <= row.keys():
        return None
    return round(held_usd(row["latency"], row["cpus"], PAPER_GHZ, row["memory"]) * 1e6, 4)


def published_error(workflow: str, mechanism: str, predictor: str) -> float | None:
    """Return the paper's mean prediction error, as a share; None if there is none."""
    errors = _published()["prediction_error_percent"]
    table = errors.get({"fork": "native"}.get(mechanism, mechanism), {})
    found: float | None = table.get(predictor, {}).get(_name(workflow))
    return None if found is None else found / 100


def source() -> str:
    """Return the source of the figures."""
    return str(_published()["source"])


def _name(workflow: str) -> str:
    """Return the paper's name of a workflow of benchmarks/."""
    return "finra-5" if workflow == "finra" else workflow


def held_usd(latency_ms: float, cpus: float, ghz: float, memory_mib: float) -> float:
    """Return the cost of a request that holds its CPUs and memory for its whole duration."""
    seconds = latency_ms / 1000
    return seconds * (cpus * ghz * USD_PER_GHZ_S + _gb(memory_mib) * USD_PER_GB_S)


def used_usd(latency_ms: float, cpu_s: float, ghz: float, memory_mib: float) -> float:
    """Return the cost of a request that pays for the CPU time used, and holds its memory."""
    return cpu_s * ghz * USD_PER_GHZ_S + latency_ms / 1000 * _gb(memory_mib) * USD_PER_GB_S


def _gb(mib: float) -> float:
    return mib * 2**20 / 1e9


@cache
def _published() -> Any:
    return read_json(_FILE, "published figures")

"""The prices of Chiron §6.2: what memory and CPU cost for the time that a request holds them."""

from __future__ import annotations

USD_PER_GB_S = 0.0000025
USD_PER_GHZ_S = 0.00001
#: What AWS Step Functions takes for each state transition, which one-to-one pays on top (§6.2).
USD_PER_TRANSITION = 0.000025


def held_usd(latency_ms: float, cpus: float, ghz: float, memory_mib: float) -> float:
    """What one request costs that holds its CPUs and memory as long as it lasts."""
    seconds = latency_ms / 1000
    return seconds * (cpus * ghz * USD_PER_GHZ_S + gb(memory_mib) * USD_PER_GB_S)


def used_usd(latency_ms: float, cpu_s: float, ghz: float, memory_mib: float) -> float:
    """The same with the CPU time that it really used."""
    return cpu_s * ghz * USD_PER_GHZ_S + latency_ms / 1000 * gb(memory_mib) * USD_PER_GB_S


def gb(mib: float) -> float:
    """MiB as GB."""
    return mib * 2**20 / 1e9

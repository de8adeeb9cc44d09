"""The settings of the runtime, read once from the environment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wrap import sandbox

#: The variable of the key without which nothing is traced.
TRACE_KEY = "chiron_trace_key"


@dataclass(frozen=True)
class Settings:
    """What the deployment may choose (README.md has the table)."""

    gateway_url: str
    pool_concurrency: int
    pool_requests: int
    threads: int
    cpus: int | None
    memory_bytes: int
    trace_key: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """The settings. Raises ValueError for a number that is none, or is not above 0."""
        return cls(
            environment.get("gateway_url") or "http://gateway.openfaas:8080",
            _count(environment, "pool_concurrency", 2),
            _count(environment, "pool_requests", 1000),
            _count(environment, "WAITRESS_THREADS", 4),
            _given(environment, "WRAP_CPUS"),
            _memory_bytes(_given(environment, "WRAP_MEMORY_MIB")),
            environment.get(TRACE_KEY, ""),
        )


def _memory_bytes(mib: int | None) -> int:
    """What the wrap may take: its sandbox may allow less than it was told."""
    allowed = sandbox.memory_bytes()
    return min(mib << 20, allowed) if mib else allowed


def _given(environment: Mapping[str, str], name: str) -> int | None:
    return _count(environment, name, 1) if environment.get(name) else None


def _count(environment: Mapping[str, str], name: str, default: int) -> int:
    text = environment.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name} is {text!r}: set it to a whole number above 0")
    return int(text)

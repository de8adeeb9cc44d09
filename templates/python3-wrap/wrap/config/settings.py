"""The settings of the runtime, read once from the environment."""

from __future__ import annotations

import contextlib
import hmac
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from wrap.config import redaction, sandbox
from wrap.core import memory_shares

#: The variable with the key that requests need to be traced.
TRACE_KEY = "chiron_trace_key"
#: The secret that direct calls between wraps need; without it, calls go through the gateway.
DIRECT_SECRET = "chiron-direct"  # noqa: S105 (its name)
#: The variable with the store for objects to other wraps; the secret with its password.
STORE, STORE_SECRET = "chiron_store", "chiron-store"
#: The variable with the entry wrap that answers instead, from the start.
ROUTE = "chiron_route"
#: The variable with the gateway's URL, which functions may read too.
GATEWAY_URL = "gateway_url"
#: The variable with the milliseconds that an execution waits for workers before it is offloaded to
#: another replica.
OFFLOAD_AFTER_MS = "WRAP_OFFLOAD_AFTER_MS"
#: The variable with the SLO, which is exported with the metrics.
SLO_MS = "WRAP_SLO_MS"
#: faasd's name for the gateway, which it writes into each function's hosts file.
_FAASD_GATEWAY, _HOSTS = "gateway", Path("/etc/hosts")


@dataclass(frozen=True)
class Settings:
    """The settings of a deployment (README.md has the table); mechanisms read their own."""

    gateway_url: str
    threads: int
    cpus: int | None
    memory_bytes: int
    budget_bytes: int
    request_bytes: int | None
    state_bytes: int | None
    trace_key: str
    route: str
    direct_key: bytes
    offload_after_s: float
    store_url: str
    store_password: str
    linger_s: float
    slo_s: float | None
    traces_url: str

    @classmethod
    def read(cls, environment: Mapping[str, str]) -> Settings:
        """Read the settings. Raises ValueError for a number that is invalid or not above 0."""
        memory_bytes = _memory_bytes(_given(environment, "WRAP_MEMORY_MIB"))
        budget_mib = _given(environment, "WRAP_OBJECTS_MIB")
        return cls(
            environment.get(GATEWAY_URL) or gateway_url(_HOSTS),
            count(environment, "WAITRESS_THREADS", 4),
            _given(environment, "WRAP_CPUS"),
            memory_bytes,
            budget_mib << 20 if budget_mib else memory_shares.of_objects(memory_bytes),
            _given(environment, "WRAP_REQUEST_BYTES"),
            _given(environment, "WRAP_STATE_BYTES"),
            environment.get(TRACE_KEY, ""),
            environment.get(ROUTE, ""),
            _direct_key(environment),
            count(environment, OFFLOAD_AFTER_MS, 20) / 1000,
            environment.get(STORE, ""),
            _secret(STORE_SECRET).decode(),
            (_given(environment, "WRAP_LINGER_MS") or 0) / 1000,
            _slo_s(environment),
            traces_url(environment),
        )


def _direct_key(environment: Mapping[str, str]) -> bytes:
    """Return the key that wraps of this build prove to have; empty if there is no secret."""
    secret = _secret(DIRECT_SECRET)
    return hmac.digest(secret, environment.get(TRACE_KEY, "").encode(), "sha256") if secret else b""


def _secret(name: str) -> bytes:
    try:
        return (redaction.SECRETS / name).read_bytes().strip()
    except OSError:
        return b""


def gateway_url(hosts: Path) -> str:
    """Return the gateway's URL if no setting has it, by a fast look-up: faasd or Kubernetes."""
    with contextlib.suppress(OSError):
        lines = (line.partition("#")[0].split() for line in hosts.read_text().splitlines())
        if any(_FAASD_GATEWAY in names[1:] for names in lines):
            return f"http://{_FAASD_GATEWAY}:8080"
    return "http://gateway.openfaas:8080"


def traces_url(environment: Mapping[str, str]) -> str:
    """Return the URL for spans, from OpenTelemetry's variables; empty for none."""
    if url := environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        return url
    base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"{base.rstrip('/')}/v1/traces" if base else ""


def _memory_bytes(mib: int | None) -> int:
    """Return the memory that the wrap may take: the setting, or the sandbox's limit if less."""
    allowed = sandbox.memory_bytes()
    return min(mib << 20, allowed) if mib else allowed


def _slo_s(environment: Mapping[str, str]) -> float | None:
    """Return the objective for the time to an answer, in seconds; None if not set."""
    text = environment.get(SLO_MS, "")
    if not text:
        return None
    try:
        milliseconds = float(text)
    except ValueError:
        milliseconds = math.nan
    if not 0 < milliseconds < math.inf:
        raise ValueError(f"{SLO_MS} is {text!r}: set it to a number of milliseconds above 0")
    return milliseconds / 1000


def _given(environment: Mapping[str, str], name: str) -> int | None:
    return count(environment, name, 1) if environment.get(name) else None


def count(environment: Mapping[str, str], name: str, default: int) -> int:
    """Return variable `name` as a whole number above 0. Raises ValueError if it is none."""
    text = environment.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name} is {text!r}: set it to a whole number above 0")
    return int(text)

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

#: The variable of the key without which nothing is traced.
TRACE_KEY = "chiron_trace_key"
#: The secret without which wraps call each other by the gateway alone.
DIRECT_SECRET = "chiron-direct"  # noqa: S105 (its name)
#: The variable of the store by which objects get to other wraps; the secret with its password.
STORE, STORE_SECRET = "chiron_store", "chiron-store"
#: The variable of the wrap that is to answer instead, from the start.
ROUTE = "chiron_route"
#: The variable of the gateway's URL, which functions know it by too.
GATEWAY_URL = "gateway_url"
#: The variable with the milliseconds that an execution waits for processes before it is another
#: replica's.
OFFLOAD_AFTER_MS = "WRAP_OFFLOAD_AFTER_MS"
#: The variable of the SLO that metrics are laid beside.
SLO_MS = "WRAP_SLO_MS"
#: faasd's name for the gateway, which it writes into the hosts file of each function.
_FAASD_GATEWAY, _HOSTS = "gateway", Path("/etc/hosts")


@dataclass(frozen=True)
class Settings:
    """What the deployment may choose (README.md has the table); mechanisms read their own."""

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
        """The settings. Raises ValueError for a number that is none, or is not above 0."""
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
    """What wraps of this build prove to each other; empty where they have no secret."""
    secret = _secret(DIRECT_SECRET)
    return hmac.digest(secret, environment.get(TRACE_KEY, "").encode(), "sha256") if secret else b""


def _secret(name: str) -> bytes:
    """A secret of the deployment; empty where there is none."""
    try:
        return (redaction.SECRETS / name).read_bytes().strip()
    except OSError:
        return b""


def gateway_url(hosts: Path) -> str:
    """Where the gateway is if no setting names it, without a slow look-up: faasd, or Kubernetes."""
    with contextlib.suppress(OSError):
        lines = (line.partition("#")[0].split() for line in hosts.read_text().splitlines())
        if any(_FAASD_GATEWAY in names[1:] for names in lines):
            return f"http://{_FAASD_GATEWAY}:8080"
    return "http://gateway.openfaas:8080"


def traces_url(environment: Mapping[str, str]) -> str:
    """Where spans are sent, by OpenTelemetry's variables; empty for nowhere."""
    if url := environment.get("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"):
        return url
    base = environment.get("OTEL_EXPORTER_OTLP_ENDPOINT")
    return f"{base.rstrip('/')}/v1/traces" if base else ""


def _memory_bytes(mib: int | None) -> int:
    """What the wrap may take: its sandbox may allow less than it was told."""
    allowed = sandbox.memory_bytes()
    return min(mib << 20, allowed) if mib else allowed


def _slo_s(environment: Mapping[str, str]) -> float | None:
    """In how many seconds a request is to be answered; None where nobody has said so."""
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
    """The whole number above 0 that variable `name` has. Raises ValueError where it has another."""
    text = environment.get(name) or str(default)
    if not text.isdecimal() or int(text) == 0:
        raise ValueError(f"{name} is {text!r}: set it to a whole number above 0")
    return int(text)

"""The body of a deployment, as faas-cli sends it, checked once, with its quantities."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from chiron.gateway import names
from chiron.workflow.errors import ChironError

# Kubernetes' suffixes, and Docker's lower-case suffixes of older stack files.
_MEMORY_UNITS = {
    "": 1,
    "k": 10**3, "M": 10**6, "G": 10**9,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30,
    "m": 2**20, "g": 2**30,
}  # fmt: skip
_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# Bounded, as a longer number would not fit into a float; no machine has that many bytes.
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"
_MEMORY = re.compile(_NUMBER + r"([A-Za-z]*)")
_CPU = re.compile(_NUMBER + r"(m?)")
_TIME_PART = re.compile(_NUMBER + r"(ns|us|µs|ms|s|m|h)")
_DURATION = re.compile(f"(?:{_TIME_PART.pattern})+")
_DEFAULT_TIMEOUT = "60s"
_MAX_REPLICAS = 64
_MIN_SCALE_LABEL = "com.openfaas.scale.min"

# Go clients write an empty map or list as null.
_Map = Annotated[dict[str, str], BeforeValidator(lambda value: {} if value is None else value)]
_List = Annotated[list[str], BeforeValidator(lambda value: [] if value is None else value)]


def memory_bytes(text: str) -> int:
    """Return the bytes of a memory quantity such as ``128Mi``; raises ChironError if it is bad."""
    match = _MEMORY.fullmatch(text)
    if match is None or match[2] not in _MEMORY_UNITS:
        raise ChironError("bad-quantity", f"memory {text!r}: write it like 128Mi or 1Gi")
    return int(float(match[1]) * _MEMORY_UNITS[match[2]])


def cpu_cores(text: str) -> float:
    """Return the cores of a CPU quantity such as ``500m`` or ``2``; raises ChironError if bad."""
    match = _CPU.fullmatch(text)
    if match is None or float(match[1]) == 0:
        raise ChironError("bad-quantity", f"cpu {text!r}: write it like 500m or 2")
    return float(match[1]) / (1000 if match[2] else 1)


def duration_s(text: str) -> float:
    """Return the seconds of a Go duration such as ``1m30s``; a bare number is in seconds."""
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise ChironError("bad-quantity", f"duration {text!r}: write it like 500ms, 60s or 1m30s")
    return sum(float(value) * _TIME_UNITS[unit] for value, unit in _TIME_PART.findall(text))


@dataclass(frozen=True)
class CallLimits:
    """The limits of one call of a function."""

    #: Time for the caller to send its request, in seconds; infinite for no limit.
    read_s: float
    #: Time for the function's whole answer, in seconds; infinite for no limit.
    answer_s: float
    #: The most concurrent requests of one replica, or None.
    inflight: int | None


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class Resources(_Body):
    """`limits` or `requests` of a deployment."""

    memory: str | None = None
    cpu: str | None = None


class Deployment(_Body):
    """A client's request for a deployment: a service, its image and how to run it."""

    service: str
    image: str
    namespace: str | None = None
    env_process: str | None = None
    env_vars: _Map = {}
    constraints: _List = []
    secrets: _List = []
    labels: _Map = {}
    annotations: _Map = {}
    limits: Resources | None = None
    requests: Resources | None = None
    read_only_root_filesystem: bool = False

    @classmethod
    def parse(cls, body: Any) -> Deployment:
        """Check a decoded JSON body and its quantities; raises ChironError with the field."""
        try:
            deployment = cls.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "body"
            raise ChironError("bad-deployment", f"deployment: {where}: {first['msg']}") from error
        names.function_name(deployment.service)
        names.check_namespace(deployment.namespace)
        names.image_reference(deployment.image)
        # Quantities are checked here, to answer the client, and parsed again when used.
        _ = deployment.memory, deployment.cores, deployment.call_limits()
        _ = deployment.requested_millicores
        check_replicas(deployment.service, deployment.min_replicas or 0)
        return deployment

    @property
    def memory(self) -> int | None:
        """Memory limit in bytes, or None."""
        limit = self.limits.memory if self.limits else None
        return memory_bytes(limit) if limit else None

    @property
    def cpus(self) -> float | None:
        """CPU limit in cores, or None."""
        limit = self.limits.cpu if self.limits else None
        return cpu_cores(limit) if limit else None

    @property
    def cores(self) -> int | None:
        """The CPU limit rounded up to whole cores, or None for no limit."""
        return math.ceil(self.cpus) if self.cpus else None

    @property
    def requested_millicores(self) -> int:
        """CPU that a replica requests, in thousandths of a core."""
        requested = self.requests.cpu if self.requests else None
        return math.ceil(1000 * cpu_cores(requested)) if requested else 0

    def environment(self, secrets_dir: str, gateway_url: str) -> dict[str, str]:
        """Return the variables that a function gets in every backend."""
        return {
            **self.env_vars,
            "OPENFAAS_NAME": self.service,
            "OPENFAAS_NAMESPACE": names.NAMESPACE,
            "gateway_url": gateway_url,
            "secrets_dir": secrets_dir,
        }

    def call_limits(self) -> CallLimits:
        """Return the limits that the watchdog's variables set; a timeout of 0 means no limit."""
        timeouts = ("read_timeout", "write_timeout", "exec_timeout")
        read, write, execution = (
            duration_s(self.env_vars.get(name, _DEFAULT_TIMEOUT)) or math.inf for name in timeouts
        )
        inflight = _whole_number("max_inflight", self.env_vars.get("max_inflight", "0"))
        return CallLimits(read, min(write, execution), inflight or None)

    @property
    def min_replicas(self) -> int | None:
        """The initial replicas by the label com.openfaas.scale.min; None without the label."""
        text = self.labels.get(_MIN_SCALE_LABEL)
        return None if text is None else _whole_number(_MIN_SCALE_LABEL, text)


def check_replicas(service: str, replicas: int) -> None:
    """Raise unless this gateway can run that many replicas of a function."""
    if not 0 <= replicas <= _MAX_REPLICAS:
        message = f"function {service}: replicas must be 0 to {_MAX_REPLICAS}"
        raise ChironError("bad-replicas", message)


def _whole_number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise ChironError("bad-number", f"{name}: {text!r} is not a whole number")
    return int(text)

"""The body of a deployment, as faas-cli sends it, checked once at the door."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError
from pydantic.alias_generators import to_camel

from gateway import names, quantities
from gateway.errors import GatewayError

_DEFAULT_TIMEOUT_S = 60.0
_MAX_REPLICAS = 64
_MIN_SCALE_LABEL = "com.openfaas.scale.min"

# Go clients write an empty map or list as null.
_Map = Annotated[dict[str, str], BeforeValidator(lambda value: {} if value is None else value)]
_List = Annotated[list[str], BeforeValidator(lambda value: [] if value is None else value)]


@dataclass(frozen=True)
class CallLimits:
    """What one call of a function may take.

    Attributes:
        read_s: time for the caller to send its request, in seconds; infinite for no limit.
        answer_s: time for the function's whole answer, likewise.
        inflight: requests that one replica takes at once, or None.
    """

    read_s: float
    answer_s: float
    inflight: int | None


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True, alias_generator=to_camel, extra="ignore")


class Resources(_Body):
    """`limits` or `requests` of a deployment."""

    memory: str | None = None
    cpu: str | None = None


class Deployment(_Body):
    """What a client asked for: a service, its image and how to run it."""

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
        """Check a decoded JSON body, quantities included; raises GatewayError naming the field."""
        try:
            deployment = cls.model_validate(body)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(str(part) for part in first["loc"]) or "body"
            raise GatewayError("bad-deployment", f"deployment: {where}: {first['msg']}") from error
        names.function_name(deployment.service)
        names.check_namespace(deployment.namespace)
        names.image_reference(deployment.image)
        # Quantities are checked here, where the client still listens, and read again when used.
        _ = deployment.memory, deployment.cores, deployment.call_limits()
        check_replicas(deployment.service, deployment.min_replicas or 0)
        return deployment

    @property
    def memory(self) -> int | None:
        """Memory limit in bytes, or None."""
        limit = self.limits.memory if self.limits else None
        return quantities.memory_bytes(limit) if limit else None

    @property
    def cpus(self) -> float | None:
        """CPU limit in cores, or None."""
        limit = self.limits.cpu if self.limits else None
        return quantities.cpu_cores(limit) if limit else None

    @property
    def cores(self) -> int | None:
        """Whole cores that the CPU limit comes to, at least 1, or None for no limit."""
        return math.ceil(self.cpus) if self.cpus else None

    def call_limits(self) -> CallLimits:
        """The limits that the watchdog's variables set; a timeout of 0 is none."""
        read, write, execution = (
            self._timeout(name) for name in ("read_timeout", "write_timeout", "exec_timeout")
        )
        inflight = _whole_number("max_inflight", self.env_vars.get("max_inflight", "0"))
        return CallLimits(read, min(write, execution), inflight or None)

    @property
    def min_replicas(self) -> int | None:
        """Replicas to start with, as the label com.openfaas.scale.min says; None without it."""
        text = self.labels.get(_MIN_SCALE_LABEL)
        return None if text is None else _whole_number(_MIN_SCALE_LABEL, text)

    def _timeout(self, name: str) -> float:
        text = self.env_vars.get(name)
        seconds = _DEFAULT_TIMEOUT_S if text is None else quantities.duration_s(text)
        return seconds or math.inf


def check_replicas(service: str, replicas: int) -> None:
    """Raise unless this gateway would run that many replicas of a function."""
    if not 0 <= replicas <= _MAX_REPLICAS:
        raise GatewayError(
            "bad-replicas", f"function {service}: replicas must be 0 to {_MAX_REPLICAS}"
        )


def _whole_number(name: str, text: str) -> int:
    if not re.fullmatch("[0-9]{1,18}", text):
        raise GatewayError("bad-number", f"{name}: {text!r} is not a whole number")
    return int(text)

"""What the OpenFaaS gateway is sent and what it answers, field by field as in its REST API."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic.alias_generators import to_camel

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([KMGT]i|[kMGT]|)", re.ASCII)
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{prefix}i": 1 << 10 * power for power, prefix in enumerate("KMGT", start=1)
}


def without_nulls(value: Any) -> Any:
    """A mapping without its None values, anything else as it is."""
    if not isinstance(value, dict):
        return value
    return {key: item for key, item in value.items() if item is not None}


class WireObject(BaseModel):
    """Base: camel case on the wire, null is absent, fields of newer gateways are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        return without_nulls(value)


class Resources(WireObject):
    """Memory and CPU in Kubernetes' notation, such as ``64Mi`` and ``500m``."""

    memory: str = ""
    cpu: str = ""

    @property
    def memory_mib(self) -> int:
        """The memory in MiB, rounded up; 0 where none is said, or in another notation."""
        match = _QUANTITY.fullmatch(self.memory.strip())
        if match is None:
            return 0
        return math.ceil(float(match[1]) * _BYTES[match[2]] / 2**20)


class FunctionSpec(WireObject):
    """A deployment: the body of PUT and POST /system/functions."""

    service: str
    image: str
    namespace: str = ""
    env_process: str = ""
    env_vars: Mapping[str, str] = {}
    constraints: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    limits: Resources | None = None
    requests: Resources | None = None
    read_only_root_filesystem: bool = False

    def body(self) -> dict[str, Any]:
        """The body as faas-cli sends it: empty fields left out, but for labels and annotations."""
        body: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for name in ("limits", "requests"):
            if not body.get(name):
                body.pop(name, None)
        return {"labels": {}, "annotations": {}} | body


class FunctionUsage(WireObject):
    """What all replicas of a function use; `cpu` in millicores."""

    cpu: float = 0.0
    total_memory_bytes: float = 0.0


class FunctionStatus(WireObject):
    """A deployed function, as list and describe answer it."""

    name: str
    image: str = ""
    namespace: str = ""
    env_process: str = ""
    env_vars: Mapping[str, str] = {}
    constraints: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    labels: Mapping[str, str] = {}
    annotations: Mapping[str, str] = {}
    limits: Resources | None = None
    requests: Resources | None = None
    read_only_root_filesystem: bool = False
    invocation_count: float = 0.0
    replicas: int = 0
    available_replicas: int = 0
    created_at: str = ""
    usage: FunctionUsage | None = None


class LogLine(WireObject):
    """One line that a function wrote; `timestamp` is RFC 3339."""

    name: str
    namespace: str = ""
    instance: str = ""
    timestamp: str = ""
    text: str = ""


class Version(WireObject):
    """Which build a component is."""

    release: str = ""
    sha: str = ""
    commit_message: str = Field(default="", alias="commit_message")


class Provider(WireObject):
    """What runs the functions, such as ``faasd`` on ``containerd``."""

    provider: str = ""
    orchestration: str = ""
    version: Version = Version()


class GatewayInfo(WireObject):
    """The answer of GET /system/info."""

    provider: Provider = Provider()
    version: Version = Version()
    arch: str = ""

    @property
    def one_node(self) -> bool:
        """Whether all functions run on one machine, as with faasd and the embedded gateway."""
        return self.provider.provider in ("faasd", "chiron-embedded")


class Secret(WireObject):
    """A secret's name; gateways never tell its value."""

    name: str
    namespace: str = ""

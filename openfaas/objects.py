"""Requests and answers of the OpenFaaS gateway, field by field as in its REST API."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, model_validator
from pydantic.alias_generators import to_camel

_QUANTITY = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,15})?)([KMGT]i|[kMGT]|)", re.ASCII)
_CPU = re.compile(r"([0-9]{1,9}(?:\.[0-9]{1,9})?)(m?)", re.ASCII)
#: The labels of OpenFaaS's scaling with the fewest and the most replicas of a function.
MIN_LABEL, MAX_LABEL = "com.openfaas.scale.min", "com.openfaas.scale.max"
#: The most replicas of a function without that label.
DEFAULT_MAX = 20
#: The labels with the metric of scaling, and its target per replica.
TYPE_LABEL, TARGET_LABEL = "com.openfaas.scale.type", "com.openfaas.scale.target"
#: The label with the largest share of its target for a replica; 0.9 by default.
PROPORTION_LABEL = "com.openfaas.scale.target-proportion"
#: The labels of scaling that only OpenFaaS Pro accepts.
PRO_LABELS = frozenset({TYPE_LABEL, TARGET_LABEL, PROPORTION_LABEL})
#: The label of a function that may scale to zero while nobody calls it.
ZERO_LABEL = "com.openfaas.scale.zero"
#: The gateway's URL for functions, by provider (whose Community Edition adds -ce).
_INSIDE = {"faasd": "http://gateway:8080", "faas-netes": "http://gateway.openfaas:8080"}
_BYTES = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12} | {
    f"{prefix}i": 1 << 10 * power for power, prefix in enumerate("KMGT", start=1)
}


class NullIsAbsent(BaseModel):
    """Base: a null field counts as absent."""

    @model_validator(mode="before")
    @classmethod
    def _without_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {key: item for key, item in value.items() if item is not None}


class WireObject(NullIsAbsent):
    """Base: camel case on the wire, null is absent, fields of newer gateways are ignored."""

    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, frozen=True, extra="ignore"
    )


class Resources(WireObject):
    """Memory and CPU in Kubernetes' notation, such as ``64Mi`` and ``500m``."""

    memory: str = ""
    cpu: str = ""

    @property
    def memory_mib(self) -> int:
        """The memory in MiB, rounded up; 0 if absent or in another notation."""
        match = _QUANTITY.fullmatch(self.memory.strip())
        if match is None:
            return 0
        return math.ceil(float(match[1]) * _BYTES[match[2]] / 2**20)

    @property
    def millicores(self) -> int:
        """The CPU in thousandths of a core, rounded up; 0 if absent."""
        match = _CPU.fullmatch(self.cpu.strip())
        return math.ceil(float(match[1]) * (1 if match[2] else 1000)) if match else 0


class _Function(WireObject):
    """The fields of a function in both deployments and the gateway's answers."""

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


class FunctionSpec(_Function):
    """A deployment: the body of PUT and POST /system/functions."""

    service: str
    image: str

    def body(self) -> dict[str, Any]:
        """Return the body as faas-cli sends it: no empty fields but labels and annotations."""
        body: dict[str, Any] = self.model_dump(mode="json", by_alias=True, exclude_defaults=True)
        for name in ("limits", "requests"):
            if not body.get(name):
                body.pop(name, None)
        return {"labels": {}, "annotations": {}} | body


class FunctionStatus(_Function):
    """A deployed function, in the gateway's list and description."""

    name: str
    image: str = ""
    invocation_count: float = 0.0
    replicas: int = 0
    available_replicas: int = 0
    created_at: str = ""

    @property
    def since(self) -> datetime:
        """The time of its deployment; the earliest time if the gateway does not report one."""
        if not self.created_at:
            return datetime.min.replace(tzinfo=UTC)
        return datetime.fromisoformat(self.created_at)

    def has_fields_of(self, spec: FunctionSpec) -> bool:
        """Return whether it has the image, and at least the labels and annotations, of `spec`."""
        return (
            self.image == spec.image
            and spec.labels.items() <= self.labels.items()
            and spec.annotations.items() <= self.annotations.items()
        )


class SecretName(WireObject):
    """A secret in the gateway, which does not reveal its value."""

    name: str


class LogLine(WireObject):
    """One line that a function wrote, without its line end; `timestamp` is RFC 3339."""

    name: str
    namespace: str = ""
    instance: str = ""
    timestamp: str = ""
    text: Annotated[str, AfterValidator(lambda text: text.rstrip("\r\n"))] = ""

    @property
    def moment(self) -> str:
        """A key that orders lines by time: a fraction of a second has no zeros at its end."""
        return self.timestamp.removesuffix("Z")


class Version(WireObject):
    """The build of the provider."""

    release: str = ""


class Provider(WireObject):
    """The platform of the functions, such as ``faasd`` on ``containerd``.

    Only a gateway that imitates faasd reports that it ends a function before it restarts it.
    """

    provider: str = ""
    orchestration: str = ""
    version: Version = Version()
    removes_first: bool = False


class GatewayInfo(WireObject):
    """The answer of GET /system/info."""

    provider: Provider = Provider()

    @property
    def one_node(self) -> bool:
        """Whether all functions run on one machine, as with faasd and the embedded gateway."""
        return self.embedded or self._provider == "faasd"

    @property
    def removes_first(self) -> bool:
        """Whether it ends a function before it restarts it, as faasd does; meanwhile calls fail."""
        return self._provider == "faasd" or self.provider.removes_first

    @property
    def embedded(self) -> bool:
        """Whether it is the embedded gateway, whose images are built here and not pulled."""
        return self.provider.provider == "chiron-embedded"

    @property
    def url_inside(self) -> str:
        """The gateway's URL for functions; empty if they are told it, or it is unknown."""
        return _INSIDE.get(self._provider, "")

    @property
    def on_kubernetes(self) -> bool:
        """Whether functions are pods, which wait for a node with enough resources."""
        return self.provider.orchestration == "kubernetes"

    @property
    def is_community_kubernetes(self) -> bool:
        """Whether it is faas-netes' Community Edition."""
        return self.provider.provider == "faas-netes-ce"

    @property
    def _provider(self) -> str:
        return self.provider.provider.removesuffix("-ce")

"""The settings of a function's container, from its deployment."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.backend import Order
from gateway.docker_engine import FUNCTION_LABEL, GATEWAY_URL_LABEL, NETWORK, OWNER_LABEL
from gateway.environment import function_environment

SECRETS_FOLDER = "/var/openfaas/secrets"
#: How often the kernel renews a container's share of CPU time.
_PERIOD_US = 100_000
#: Processes and threads of a container: far more than a wrap has, far less than a machine bears.
_MOST_TASKS = 4096
#: `docker logs` shows the end of the log too; the gateway keeps its own.
_LOG = {"type": "json-file", "config": {"max-size": "1m"}}


@dataclass(frozen=True)
class Origin:
    """Whose containers they are.

    Attributes:
        owner: the gateway process, as `owners.identity` says it.
        url: where it listens.
        inner_url: where containers reach it.
    """

    owner: str
    url: str
    inner_url: str


def container_settings(order: Order, image: str, origin: Origin) -> dict[str, Any]:
    """The arguments of docker-py's `containers.create` for a replica.

    The function runs as the image's user without capabilities, with the files of the image, of
    which it may change its own copy unless the deployment says read-only, and reads its secrets.
    """
    deployment = order.deployment
    environment = function_environment(deployment, SECRETS_FOLDER, origin.inner_url)
    if deployment.env_process:
        environment["fprocess"] = deployment.env_process
    settings: dict[str, Any] = {
        "image": image,
        "name": order.instance,
        "environment": environment,
        "labels": {
            **deployment.labels,
            FUNCTION_LABEL: deployment.service,
            GATEWAY_URL_LABEL: origin.url,
            OWNER_LABEL: origin.owner,
        },
        "volumes": {str(order.secrets): {"bind": SECRETS_FOLDER, "mode": "ro"}},
        "network_mode": NETWORK,
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges"],
        "pids_limit": _MOST_TASKS,
        "log_config": _LOG,
        # The gateway asks itself; an image's own check would start a process every few seconds.
        "healthcheck": {"test": ["NONE"]},
    }
    if deployment.memory:
        # The same limit for memory and swap: no swap, as on Kubernetes.
        settings |= {"mem_limit": deployment.memory, "memswap_limit": deployment.memory}
    if deployment.cpus:
        # Not as nano_cpus, which Docker refuses above the number of cores, as Kubernetes does not.
        settings |= {"cpu_period": _PERIOD_US, "cpu_quota": round(deployment.cpus * _PERIOD_US)}
    if deployment.read_only_root_filesystem:
        settings |= {"read_only": True, "tmpfs": {"/tmp": ""}}  # noqa: S108 (the container's)
    return settings

"""The environment of a function: nothing of the gateway's own but what it must have."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from gateway.deployment import Deployment
from gateway.images import Image
from gateway.names import NAMESPACE


@dataclass(frozen=True)
class Sandbox:
    """Private folders of one function process."""

    home: Path
    temporary: Path
    secrets: Path


def process_environment(
    deployment: Deployment, image: Image, sandbox: Sandbox, gateway_url: str
) -> dict[str, str]:
    """The variables of a function's process; the deployment's win over the image's."""
    limit = deployment.memory
    return {
        **({"MEMORY_LIMIT_BYTES": str(limit)} if limit else {}),
        "PATH": f"{image.python.parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
        "HOME": str(sandbox.home),
        "TMPDIR": str(sandbox.temporary),
        "LANG": "C.UTF-8",
        "PYTHONUNBUFFERED": "1",
        **image.env,
        **function_environment(deployment, str(sandbox.secrets), gateway_url),
    }


def function_environment(
    deployment: Deployment, secrets_dir: str, gateway_url: str
) -> dict[str, str]:
    """The variables that a function gets wherever it runs."""
    return {
        **deployment.env_vars,
        "OPENFAAS_NAME": deployment.service,
        "OPENFAAS_NAMESPACE": NAMESPACE,
        "gateway_url": gateway_url,
        "secrets_dir": secrets_dir,
    }

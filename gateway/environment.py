"""The environments of functions and of the gateway's own processes, and the start of the latter."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from gateway.names import NAMESPACE

if TYPE_CHECKING:  # a program that embeds a gateway imports nothing of its server
    from gateway.deployment import Deployment
    from gateway.images import Image

#: What the gateway and its supervisors take from the process that starts them: where things are.
_OWN = (
    *("PATH", "LD_LIBRARY_PATH", "PYTHONHOME", "PYTHONPATH", "HOME", "CHIRON_HOME", "TMPDIR"),
    *("LANG", "LC_ALL", "LC_CTYPE", "TZ"),
    *("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"),
)


@dataclass(frozen=True)
class Sandbox:
    """Private folders of one function process."""

    home: Path
    temporary: Path
    secrets: Path


def own_environment() -> dict[str, str]:
    """The variables of the gateway's own processes: none that may be a credential.

    Functions can be of the same user, who may read every process's first environment.
    """
    return {name: os.environ[name] for name in _OWN if name in os.environ}


def start_supervisor(
    module: str, channel: socket.socket, *arguments: str
) -> subprocess.Popen[bytes]:
    """Start a process of the gateway's own, which gets the number of `channel` first."""
    return subprocess.Popen(
        [sys.executable, "-m", module, str(channel.fileno()), *arguments],
        cwd=Path(__file__).resolve().parent.parent,
        env=own_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        pass_fds=(channel.fileno(),),
        start_new_session=True,
    )


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

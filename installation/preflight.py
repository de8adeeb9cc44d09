"""All checks of this machine, for ``chiron doctor`` and ``/healthz``."""

from __future__ import annotations

from collections.abc import Mapping

from installation.docker_engine import check_docker
from installation.findings import Finding
from installation.gateway_check import check_faas_cli, check_gateway
from installation.machine import check_cgroup, check_cores, check_python
from installation.packages import os_release
from installation.tracing import check_strace, check_tracing
from openfaas.credentials import credentials_for
from workflow.errors import ChironError


def preflight(gateway: str, variables: Mapping[str, str]) -> list[Finding]:
    """What is here and what is missing, in the order in which one would mend it.

    Nothing is raised and nothing is changed; each check takes a few seconds at most. `variables`
    (usually ``os.environ``) has PATH and where faas-cli keeps the credentials of `gateway`.
    """
    search_path = variables.get("PATH", "")
    return [
        check_python(),
        check_cores(),
        check_cgroup(),
        check_strace(search_path, os_release()),
        check_tracing(search_path),
        check_faas_cli(search_path),
        _gateway(gateway, variables),
        check_docker(),
    ]


def _gateway(url: str, variables: Mapping[str, str]) -> Finding:
    try:
        credentials = credentials_for(url, variables)
    except ChironError as error:
        fix = f"faas-cli login -g {url}"
        return Finding("gateway", False, error.message, fix, required=False)
    return check_gateway(url, credentials)

"""All checks of this machine, Docker and the gateway (``chiron doctor``, ``/healthz``)."""

from __future__ import annotations

import importlib
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from chiron.installation.packages import Finding, extra_line, os_release
from chiron.installation.tracing import check_strace, check_tracing
from chiron.openfaas.client import Gateway
from chiron.openfaas.credentials import Credentials, credentials_for
from chiron.openfaas.objects import GatewayInfo
from chiron.openfaas.stack import PREFIX, image_prefix
from chiron.scheduler.limits import COMMUNITY_EDITION_FUNCTIONS
from chiron.workflow.errors import ChironError

#: The timeout of the Docker engine in seconds.
DOCKER_LIMIT_S = 3
#: The timeout of one answer of the gateway in seconds.
GATEWAY_LIMIT_S = 2.0
#: Replicas of a function by provider, under the Community Edition's limits.
CE_REPLICAS = {"faasd": "1", "faasd-ce": "1", "faas-netes-ce": "1 to 5"}
#: Asks the engine that faas-cli builds with, by Docker's contexts and DOCKER_HOST.
_ENGINE = ("docker", "version", "--format", "{{.Server.Version}}")


def python() -> Finding:
    """Which Python runs this; an older one than pip demands could not import the checks."""
    return Finding("python", True, f"{platform.python_version()} at {sys.executable}")


def check_cores(cores: int) -> Finding:
    """How many cores this process may run on; on one core, a wrap's processes only take turns."""
    if cores >= 2:
        return Finding("cores", True, f"{cores} cores", required=False)
    fix = "give it two cores or more: on one, parallel processes only take turns"
    return Finding("cores", False, "1 core", fix, required=False)


def check_cgroup(root: Path = Path("/sys/fs/cgroup")) -> Finding:
    """Which version of control groups is mounted: memory and pids are read from its files."""
    if (root / "cgroup.controllers").exists():
        return Finding("cgroup", True, "version 2", required=False)
    if (root / "memory").is_dir():
        return Finding("cgroup", True, "version 1", required=False)
    fix = f"mount cgroup2 at {root}; without it memory is read from /proc only"
    return Finding("cgroup", False, f"none at {root}", fix, required=False)


def check_docker() -> Finding:
    """Whether docker-py is installed, and whether the engine of its configuration answers."""
    try:
        docker = importlib.import_module("docker")
    except ImportError:
        fix = extra_line("docker")
        return Finding("docker", False, "docker-py is not installed", fix, required=False)
    try:
        client = docker.from_env(timeout=DOCKER_LIMIT_S)
        try:
            version = client.version()["Version"]
        finally:
            client.close()
    # docker-py also raises errors of requests, urllib3 and the socket.
    except Exception as error:
        detail = f"the engine does not answer: {_reason(error)}"
        fix = "start it (sudo systemctl start docker) or see installation/docker.md"
        return Finding("docker", False, detail, fix, required=False)
    return Finding("docker", True, f"engine {version}", required=False)


def check_dashboard() -> Finding:
    """Whether the libraries of the dashboard are installed."""
    if all(map(find_spec, ("dash", "dash_cytoscape"))):
        return Finding("dashboard", True, "installed", required=False)
    fix = extra_line("dashboard")
    return Finding("dashboard", False, "Dash is not installed", fix, required=False)


def _reason(error: BaseException) -> str:
    """Return the innermost cause on one line; the outer errors only repeat it."""
    while error.__cause__ or error.__context__:
        error = error.__cause__ or error.__context__ or error
    return " ".join(str(error).split()) or type(error).__name__


def check_faas_cli(search_path: str) -> Finding:
    found = shutil.which("faas-cli", path=search_path)
    if found:
        return Finding("faas-cli", True, found, required=False)
    fix = "installation/faas-cli/install.sh PREFIX builds it (needs Go)"
    return Finding("faas-cli", False, "not on PATH", fix, required=False)


def check_gateway(
    url: str, credentials: Credentials | None, verify_tls: bool = True
) -> tuple[Finding, GatewayInfo | None]:
    """Whether an OpenFaaS gateway answers at `url` and accepts `credentials`, and its details."""
    with Gateway(url, credentials, verify_tls, GATEWAY_LIMIT_S) as gateway:
        try:
            info = gateway.info()
            deployed = len(gateway.functions())
        except ChironError as error:
            return Finding("gateway", False, error.message, _fix(error, url), required=False), None
    return Finding("gateway", True, _description(url, info, deployed), required=False), info


def _description(url: str, info: GatewayInfo, deployed: int) -> str:
    provider = info.provider
    release = f"{provider.provider} {provider.version.release}".strip() or "unknown provider"
    text = f"{release} at {url}"
    replicas = CE_REPLICAS.get(provider.provider)
    if replicas is None:
        return f"{text}, {deployed} functions"
    functions = f"{deployed} of {COMMUNITY_EDITION_FUNCTIONS} functions"
    return f"{text}, {functions}, {replicas} replicas each (CE)"


def _fix(error: ChironError, url: str) -> str:
    if error.code == "unauthorised":
        return f"faas-cli login -g {url}"
    return "chiron serve starts an embedded one; installation/README.md has the others"


def check_images(variables: Mapping[str, str], pulling: str | None) -> Finding:
    """Whether images can be built and pushed to the registry that OPENFAAS_PREFIX names.

    Args:
        pulling: the gateway that pulls its images; None if no such gateway answers.
    """
    try:
        prefix = image_prefix(variables)
    except ChironError as error:
        return _lack(error.message, f"export {PREFIX}=docker.io/NAME")
    if prefix:
        return _engine(prefix, variables)
    if pulling is None:
        detail = f"chiron builds them for the embedded gateway; {PREFIX} is not set"
        return Finding("images", True, detail, required=False)
    fix = f"export {PREFIX}=docker.io/NAME, a registry that its nodes pull from, and docker login"
    return _lack(f"{PREFIX} is not set, and {pulling} pulls its images from a registry", fix)


def _engine(prefix: str, variables: Mapping[str, str]) -> Finding:
    pushed = f"{PREFIX} is {prefix}"
    fix = "start it, or choose another: docker context use, DOCKER_HOST; see installation/docker.md"
    try:
        done = subprocess.run(
            _ENGINE,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=DOCKER_LIMIT_S,
            check=False,
        )
    except FileNotFoundError:
        return _lack(f"{pushed}, but docker, with which faas-cli builds, is not on PATH", fix)
    except (OSError, subprocess.TimeoutExpired) as error:
        return _lack(f"{pushed}, but docker does not answer: {type(error).__name__}", fix)
    if done.returncode:
        said = " ".join(done.stderr.split()) or f"status {done.returncode}"
        return _lack(f"{pushed}, but the engine of docker does not answer: {said}", fix)
    detail = f"{pushed}; faas-cli builds with engine {done.stdout.strip()}"
    return Finding("images", True, detail, required=False)


def _lack(detail: str, fix: str) -> Finding:
    return Finding("images", False, detail, fix, required=False)


def preflight(gateway: str, variables: Mapping[str, str], verify_tls: bool = True) -> list[Finding]:
    """Return all findings, in the order in which to fix them.

    It raises no errors and changes nothing; each check takes a few seconds at most. `variables`
    (usually ``os.environ``) has PATH and the location of faas-cli's credentials for `gateway`.
    """
    search_path = variables.get("PATH", "")
    finding, info = _gateway(gateway, variables, verify_tls)
    pulling = info.provider.provider or "this gateway" if info and not info.embedded else None
    return [
        python(),
        check_cores(len(os.sched_getaffinity(0))),
        check_cgroup(),
        check_strace(search_path, os_release()),
        check_tracing(search_path),
        check_faas_cli(search_path),
        finding,
        check_images(variables, pulling),
        check_docker(),
        check_dashboard(),
    ]


def _gateway(
    url: str, variables: Mapping[str, str], verify_tls: bool
) -> tuple[Finding, GatewayInfo | None]:
    try:
        credentials = credentials_for(url, variables)
    except ChironError as error:
        fix = f"faas-cli login -g {url}"
        return Finding("gateway", False, error.message, fix, required=False), None
    return check_gateway(url, credentials, verify_tls)

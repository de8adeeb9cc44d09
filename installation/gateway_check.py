"""Whether faas-cli and an OpenFaaS gateway are there, and what the gateway allows."""

from __future__ import annotations

import shutil

from installation.findings import Finding
from openfaas.client import Gateway
from openfaas.credentials import BearerToken, Credentials
from openfaas.objects import GatewayInfo
from workflow.errors import ChironError

#: Longest that the gateway may take for one answer, in seconds.
LIMIT_S = 2.0
#: Functions that the Community Edition allows (its end-user licence agreement).
CE_FUNCTIONS = 15
#: Replicas of a function that each provider under the Community Edition's limits keeps.
CE_REPLICAS = {"faasd": "1", "faasd-ce": "1", "faas-netes-ce": "1 to 5"}


def check_faas_cli(search_path: str) -> Finding:
    """Whether faas-cli is on `search_path`."""
    found = shutil.which("faas-cli", path=search_path)
    if found:
        return Finding("faas-cli", True, found, required=False)
    fix = "installation/faas-cli/install.sh PREFIX builds it (needs Go)"
    return Finding("faas-cli", False, "not on PATH", fix, required=False)


def check_gateway(url: str, credentials: Credentials | BearerToken | None) -> Finding:
    """Whether an OpenFaaS gateway answers at `url` and accepts `credentials`."""
    with Gateway(url, credentials, timeout_s=LIMIT_S) as gateway:
        try:
            info = gateway.info()
            deployed = len(gateway.functions())
        except ChironError as error:
            return Finding("gateway", False, error.message, _fix(error, url), required=False)
    return Finding("gateway", True, _description(url, info, deployed), required=False)


def _description(url: str, info: GatewayInfo, deployed: int) -> str:
    provider = info.provider
    release = f"{provider.provider} {provider.version.release}".strip() or "unknown provider"
    text = f"{release} at {url}"
    replicas = CE_REPLICAS.get(provider.provider)
    if replicas is None:
        return f"{text}, {deployed} functions"
    return f"{text}, {deployed} of {CE_FUNCTIONS} functions, {replicas} replicas each (CE)"


def _fix(error: ChironError, url: str) -> str:
    if error.code == "unauthorised":
        return f"faas-cli login -g {url}"
    return "chiron serve starts an embedded one; installation/README.md has the others"

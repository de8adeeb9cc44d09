"""Where a verb deploys: the gateway that the user named, or an embedded one for its length."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from cli.images import BUILDERS, EMBEDDED_PROVIDER
from cli.publish import publish
from gateway.embedded import EmbeddedGateway
from gateway.errors import GatewayError
from gateway.names import BackendName as Backend
from generator.launcher import Launcher
from openfaas.client import Gateway
from openfaas.credentials import credentials_for, gateway_url
from workflow.errors import ChironError


@contextmanager
def connect(
    flag: str | None, *, local: Backend | None, tls_no_verify: bool = False
) -> Iterator[Launcher]:
    """A launcher on the gateway that flags and environment name, or on one that is embedded.

    Parameters
    ----------
    local
        What runs the functions of the embedded gateway; None for the gateway that is named.

    Raises
    ------
    ChironError
        ``no-gateway``, which offers ``--local``; ``unauthorised``.
    """
    if local:
        with embedded_gateway(backend=local) as url, Gateway(url) as gateway:
            yield Launcher(gateway, BUILDERS[local])
        return
    url = gateway_url(flag, os.environ)
    with Gateway(url, credentials_for(url, os.environ), verify_tls=not tls_no_verify) as gateway:
        yield launcher_on(gateway)


@contextmanager
def embedded_gateway(
    port: int = 0,
    backend: Backend = "process",
    user: str | None = None,
    password: str | None = None,
) -> Iterator[str]:
    """The URL of an embedded gateway for the length of the block.

    Parameters
    ----------
    port
        0 takes a free one.
    user, password
        What its management API asks for: both, or nothing where neither is given.
    """
    try:
        with EmbeddedGateway(port, user=user, password=password, backend=backend) as embedded:
            yield embedded.url
    except GatewayError as error:
        raise ChironError(error.code, error.message, status=error.status) from None


def launcher_on(gateway: Gateway) -> Launcher:
    """A launcher that can build images for `gateway`."""
    provider = gateway.info().provider
    if provider.provider == EMBEDDED_PROVIDER:
        docker = provider.orchestration == "docker"
        return Launcher(gateway, BUILDERS["docker" if docker else "process"])
    return Launcher(gateway, publish)

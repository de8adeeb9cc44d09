"""`chiron serve`: the web services, and the embedded gateway beside them."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import click

from cli import options
from cli.output import next_step, progress
from cli.place import connect, embedded_gateway
from gateway.names import BackendName as Backend
from openfaas.credentials import gateway_url
from services.access import Secret, basic_auth, bearer_token
from services.app import COMPONENTS, Config, create_app
from services.serve import HOST, PORT, listen, serve

_GATEWAY = "gateway"
_ALL = "all"


@click.command("serve")
@click.argument("parts", nargs=-1, type=click.Choice([_ALL, _GATEWAY, *COMPONENTS]))
@click.option("--host", default=HOST, show_default=True, help="Address of the services.")
@click.option("--port", default=PORT, show_default=True, help="Port of the services.")
@click.option("--gateway-port", default=8080, show_default=True, help="Port of the gateway.")
@click.option(
    "--root",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    default=".",
    show_default=True,
    help="Clients may name workflow folders below it.",
)
@click.option(
    "--basic-auth-dir",
    type=click.Path(path_type=Path),
    help="Ask for the user and password in its files basic-auth-user and basic-auth-password.",
)
@click.option("--token-file", type=click.Path(path_type=Path), help="Ask for the token in it.")
@options.backend
@options.gateway
@options.tls_no_verify
def command(
    parts: tuple[str, ...],
    host: str,
    port: int,
    gateway_port: int,
    root: Path,
    basic_auth_dir: Path | None,
    token_file: Path | None,
    backend: Backend | None,
    gateway: str | None,
    tls_no_verify: bool,
) -> None:
    """Run the web services and the embedded gateway until SIGINT or SIGTERM.

    PARTS are all (the default), gateway, or some of the services. With -g, the services use that
    gateway and none is embedded. On another address than this machine's own they have to ask for
    a secret.

    \b
    Example:
      chiron serve
      chiron serve predictor scheduler
    """
    everything = not parts or _ALL in parts
    components = [name for name in COMPONENTS if everything or name in parts]
    embedded = gateway is None and (everything or _GATEWAY in parts)
    if not components:
        with _gateway(embedded, gateway_port, backend, gateway):
            while True:
                signal.pause()
    secret = _secret(basic_auth_dir, token_file)
    listener = listen(host, port, secret=secret)
    with listener, _gateway(embedded, gateway_port, backend, gateway) as url:
        config = Config(
            connect=partial(connect, url, local=None, tls_no_verify=tls_no_verify),
            gateway_url=url,
            root=root.resolve(),
            components=components,
            secret=secret,
        )
        progress(f"services on http://{host}:{listener.getsockname()[1]}, /docs shows them")
        next_step(
            f"curl -s http://{host}:{listener.getsockname()[1]}/deployments "
            """-H 'Content-Type: application/json' """
            """-d '{"directory": "benchmarks/finra", "slo": "200ms"}'"""
        )
        serve(listener, create_app(config))


def _secret(basic_auth_dir: Path | None, token_file: Path | None) -> Secret | None:
    if basic_auth_dir and token_file:
        raise click.UsageError("--basic-auth-dir and --token-file: choose one")
    if basic_auth_dir:
        return basic_auth(basic_auth_dir)
    return bearer_token(token_file) if token_file else None


@contextmanager
def _gateway(embedded: bool, port: int, backend: Backend | None, flag: str | None) -> Iterator[str]:
    """The URL of the gateway to use; an embedded one lives as long as the block."""
    if not embedded:
        yield gateway_url(flag, os.environ)
        return
    with embedded_gateway(port, backend or "process") as url:
        progress(f"embedded gateway on {url}")
        yield url

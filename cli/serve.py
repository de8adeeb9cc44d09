"""`chiron serve`: runs the web services and the embedded gateway."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.output import progress
from chiron.gateway import processes
from chiron.gateway.names import PASSWORD_VARIABLE, USER_VARIABLE
from chiron.gateway.names import BackendName as Backend
from chiron.openfaas.credentials import gateway_url
from chiron.services import HOST, NAMES, PORT, fork_server

_GATEWAY = "gateway"
_ALL = "all"
_PORT = options.WholeNumber(0, 65535)
#: The parameters of the services, and those of the embedded gateway.
_OF_SERVICES = ("host", "port", "root", "basic_auth_dir", "token_file", "tls_no_verify", "store")
_OF_GATEWAY = ("gateway_port", "backend")


@click.command("serve")
@click.argument("parts", nargs=-1, type=click.Choice([_ALL, _GATEWAY, *NAMES]), metavar="[PART]...")
@click.option("--host", default=HOST, show_default=True, help="Address of the services.")
@click.option("--port", type=_PORT, default=PORT, show_default=True, help="Port of the services.")
@click.option(
    "--gateway-port", type=_PORT, default=8080, show_default=True, help="Port of the gateway."
)
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
@options.store
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
    store: str,
) -> None:
    """Run the web services and the embedded gateway until SIGINT or SIGTERM.

    A PART is all (the default), gateway, profiler, predictor, scheduler, generator or deployments.
    With -g, the services use that gateway and none is embedded. On another address than this
    machine's own they have to ask for a secret.

    \b
    Example:
      chiron serve
      chiron serve predictor scheduler
    """
    everything = not parts or _ALL in parts
    wanted = [name for name in NAMES if everything or name in parts]
    embedded = gateway is None and (everything or _GATEWAY in parts)
    _check(wanted, embedded=embedded, both=gateway is not None and _GATEWAY in parts)
    # Functions that run as the same user could read them here, or in what this process starts.
    processes.forbid_inspection()
    credentials = os.environ.pop(USER_VARIABLE, None), os.environ.pop(PASSWORD_VARIABLE, None)
    lost = threading.Event()
    place = (
        _embedded(gateway_port, backend, *credentials, lost)
        if embedded
        else nullcontext(gateway_url(gateway, os.environ))
    )
    if not wanted:
        with place:
            lost.wait()
            return
    fork_server.prepare()
    from chiron.cli.serve_components import serve_components  # which the fork server does meanwhile

    secrets = basic_auth_dir, token_file
    serve_components(wanted, place, host, port, root, *secrets, tls_no_verify, store, lost)


def _check(wanted: Sequence[str], *, embedded: bool, both: bool) -> None:
    """Refuse what would have no effect: nobody would ask for a secret, for example."""
    if both:
        raise click.UsageError("gateway and -g: choose one, as -g names another gateway")
    for names, runs, what in (
        (_OF_SERVICES, bool(wanted), "services"),
        (_OF_GATEWAY, embedded, "embedded gateway"),
    ):
        given = [f"--{name.replace('_', '-')}" for name in names if options.is_given(name)]
        if given and not runs:
            raise click.UsageError(f"{', '.join(given)}: this starts no {what}")


@contextmanager
def _embedded(
    port: int,
    backend: Backend | None,
    user: str | None,
    password: str | None,
    lost: threading.Event,
) -> Iterator[str]:
    from chiron.cli.place import embedded_gateway

    with embedded_gateway(port, backend or "process", user, password, lost) as url:
        progress(f"embedded gateway on {url}")
        yield url

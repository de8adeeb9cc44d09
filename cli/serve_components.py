"""The part of `chiron serve` that imports the web services."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path

import click

from cli.output import next_step, progress
from cli.place import connect
from services.access import Secret, basic_auth, bearer_token
from services.app import Config, create_app
from services.serve import listen, serve


def serve_components(
    components: Sequence[str],
    gateway: AbstractContextManager[str],
    host: str,
    port: int,
    root: Path,
    basic_auth_dir: Path | None,
    token_file: Path | None,
    tls_no_verify: bool,
) -> None:
    """Serve `components` until SIGINT or SIGTERM, with the gateway whose URL `gateway` gives.

    The other parameters are options of the verb.
    """
    secret = _secret(basic_auth_dir, token_file)
    listener = listen(host, port, secret=secret)
    with listener, gateway as url:
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
        serve(listener, create_app(config), secret)


def _secret(basic_auth_dir: Path | None, token_file: Path | None) -> Secret | None:
    if basic_auth_dir and token_file:
        raise click.UsageError("--basic-auth-dir and --token-file: choose one")
    if basic_auth_dir:
        return basic_auth(basic_auth_dir)
    return bearer_token(token_file) if token_file else None

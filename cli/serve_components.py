"""The part of `chiron serve` that imports the web services."""

from __future__ import annotations

import json
import os
import shlex
import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from importlib.util import find_spec
from pathlib import Path

import click

from chiron.cli.output import next_step, progress
from chiron.cli.place import Place
from chiron.generator.stores import StorePlace
from chiron.installation.packages import extra_line
from chiron.openfaas.credentials import Credentials
from chiron.services.access import SECRET_FILES, basic_auth, bearer_token
from chiron.services.app import create_app
from chiron.services.folders import example_folder
from chiron.services.host import Config
from chiron.services.serve import listen, serve


def serve_components(
    components: Sequence[str],
    gateway: AbstractContextManager[str],
    host: str,
    port: int,
    root: Path,
    basic_auth_dir: Path | None,
    token_file: Path | None,
    tls_no_verify: bool,
    store: str,
    lost: threading.Event,
) -> None:
    """Serve `components` until SIGINT, SIGTERM or `lost`; `gateway` yields the gateway's URL.

    The other parameters are options of the verb.
    """
    StorePlace.read(store, os.environ)  # else the first job would tell what is wrong with it
    secret = _secret(basic_auth_dir, token_file)
    listener = listen(host, port, secret=secret)
    with listener, gateway as url:
        config = Config(
            connect=Place(url, tls_no_verify, store=store).connect,
            gateway_url=url,
            root=root.resolve(),
            components=components,
            secret=secret,
            verify_tls=not tls_no_verify,
            store=store,
        )
        reached = address(host, listener.getsockname()[1])
        progress(f"services on {reached}, /docs shows them")
        installed = find_spec("dash")
        progress(f"dashboard {f'on {reached}/' if installed else extra_line('dashboard')}")
        if "deployments" in components:
            body = json.dumps({"directory": example_folder(config.root), "slo": "200ms"})
            credentials = _credentials(basic_auth_dir, token_file)
            typed = "-H 'Content-Type: application/json'"
            next_step(f"curl -s {credentials}{reached}/deployments {typed} -d {shlex.quote(body)}")
        serve(listener, create_app(config), secret, lost)


def address(host: str, port: int) -> str:
    """Return the URL by which this machine reaches a server on `host`."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _credentials(basic_auth_dir: Path | None, token_file: Path | None) -> str:
    """Return curl's options that read and send the secret, with a trailing space."""
    if basic_auth_dir:
        user, password = (shlex.quote(str(basic_auth_dir / name)) for name in SECRET_FILES)
        return f'-u "$(cat {user}):$(cat {password})" '
    if token_file:
        return f'-H "Authorization: Bearer $(cat {shlex.quote(str(token_file))})" '
    return ""


def _secret(basic_auth_dir: Path | None, token_file: Path | None) -> Credentials | None:
    if basic_auth_dir and token_file:
        raise click.UsageError("--basic-auth-dir and --token-file: choose one")
    if basic_auth_dir:
        return basic_auth(basic_auth_dir)
    return bearer_token(token_file) if token_file else None

"""The place where a verb deploys: a named gateway or an embedded one, with its images."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, cast

import click

from chiron.cli import options
from chiron.cli.output import progress, warn
from chiron.deployment.deploy import Builder
from chiron.deployment.launcher import Launcher
from chiron.deployment.publish import publish
from chiron.gateway.build import LANGS, FunctionSource, build, build_in_docker, check
from chiron.gateway.embedded import EmbeddedGateway
from chiron.gateway.images import ImageStore, images_folder
from chiron.gateway.names import BackendName as Backend
from chiron.generator.stores import StorePlace
from chiron.openfaas.client import Gateway
from chiron.openfaas.credentials import SECRETS, credentials_for, gateway_url, read_secrets
from chiron.openfaas.stack import image_prefix, read_stack
from chiron.templates import TEMPLATES
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import check_links


@dataclass(frozen=True)
class Place:
    """The place where a verb deploys, as its options name it.

    ``local`` is the backend of an embedded gateway; None means the gateway in `gateway` or the
    environment. Functions reach the gateway at ``gateway_url_inside``; default: its provider's
    usual address. ``store`` is the URL of the object store, for plans that need one.
    """

    gateway: str | None = None
    tls_no_verify: bool = False
    gateway_url_inside: str = ""
    local: Backend | None = None
    store: str = ""

    @contextmanager
    def connect(self) -> Iterator[Launcher]:
        """Return a launcher for the place during the block.

        Raises ``no-gateway``, which offers ``--local``; ``unauthorised``; ``bad-store``.
        """
        store = StorePlace.read(self.store, os.environ)
        named = nullcontext(gateway_url(self.gateway, os.environ))
        with embedded_gateway(backend=self.local) if self.local else named as url:
            credentials = None if self.local else credentials_for(url, os.environ)
            with Gateway(url, credentials, verify_tls=not self.tls_no_verify) as client:
                if self.local:
                    store_secrets(client, SECRETS)
                launcher = replace(launcher_on(client, self.gateway_url_inside), store=store)
                try:
                    yield launcher
                finally:
                    try:
                        launcher.remove_left()
                    except ChironError as error:
                        warn([error.message])

    @property
    def flags(self) -> list[str]:
        """Return the options that name the same place for another verb."""
        gateway = ["-g", self.gateway] if self.gateway else []
        embedded = ["--local"] if self.local else []
        backend = ["--backend", self.local] if self.local and self.local != "process" else []
        return [*gateway, *embedded, *backend, *(["--tls-no-verify"] * self.tls_no_verify)]


def place(*more: Callable[..., Any]) -> Callable[[options.Command], options.Command]:
    """Add --gateway, --tls-no-verify and the options `more` as one argument, a `Place`."""

    def add(command: options.Command) -> options.Command:
        @wraps(command)
        def with_place(*arguments: Any, **others: Any) -> Any:
            said = {f.name: others.pop(f.name) for f in fields(Place) if f.name in others}
            if said.get("local") and said.get("gateway"):
                raise click.UsageError("--local and --gateway: choose one")
            return command(*arguments, place=Place(**said), **others)

        decorated = cast(options.Command, with_place)
        for option in (*reversed(more), options.tls_no_verify, options.gateway):
            decorated = option(decorated)
        return decorated

    return add


def store_secrets(gateway: Gateway, folder: Path) -> None:
    """Store the secrets in `folder` at `gateway`; raises ``bad-secret``."""
    for name, value in read_secrets(folder).items():
        gateway.ensure_secret(name, value=value)


@contextmanager
def embedded_gateway(
    port: int = 0,
    backend: Backend = "process",
    user: str | None = None,
    password: str | None = None,
    lost: threading.Event | None = None,
) -> Iterator[str]:
    """Run an embedded gateway during the block and return its URL; port 0 means any free port.

    Its management API requires `user` and `password`, if given.

    If the gateway dies, `lost` is set. The block must end then, and ``gateway-lost`` is raised:
    another gateway would not have the deployments.
    """
    with (
        EmbeddedGateway(port, user=user, password=password, backend=backend, say=_warn) as embedded,
        _noticing(embedded, lost) if lost else nullcontext(),
    ):
        yield embedded.url


def _warn(line: str) -> None:
    progress(f"warning: the embedded gateway: {line}")


@contextmanager
def _noticing(gateway: EmbeddedGateway, lost: threading.Event) -> Iterator[None]:
    # A thread waits: a C extension may drop the error that a handler of SIGCHLD raises.
    def watch() -> None:
        gateway.wait()
        lost.set()

    threading.Thread(target=watch, daemon=True).start()
    yield
    if lost.is_set():
        message = (
            f"the embedded gateway {gateway.describe_end()}; what was deployed on it is gone: "
            "start it again, and deploy again"
        )
        raise ChironError("gateway-lost", message, status=500)


def builder() -> Builder:
    """Return the builder of images for the gateway that the environment names.

    If no gateway answers, images are for the registry in OPENFAAS_PREFIX; without that, for an
    embedded gateway that starts later.

    Raises ``unauthorised`` if the gateway requires a login and no registry is named.
    """
    try:
        with Place().connect() as launcher:
            return launcher.build
    except ChironError as error:
        if image_prefix(os.environ):
            return publish
        if error.code == "unauthorised":
            raise
        progress("no gateway says what it is: building for the embedded one (chiron serve)")
        return BUILDERS["process"]


def launcher_on(gateway: Gateway, gateway_url_inside: str = "") -> Launcher:
    info = gateway.info()
    if info.embedded:
        if info.provider.orchestration == "docker":
            return Launcher(gateway, BUILDERS["docker"])
        return Launcher(gateway, BUILDERS["process"], langs=LANGS)
    return Launcher(gateway, publish, gateway_url=gateway_url_inside)


def build_local(stack_file: Path) -> None:
    """Build every function of `stack_file` into the embedded gateway's image store.

    As with faas-cli, functions with ``skip_build`` are skipped: their images exist.

    Raises ``bad-link``, or the gateway's own error, with the function's name; images built before
    stay.
    """
    store = ImageStore(images_folder())
    _build_all(stack_file, lambda source, _: check(source, TEMPLATES))  # before packages install
    _build_all(stack_file, lambda source, _: build(source, TEMPLATES, store, say=progress))


def build_docker(stack_file: Path) -> None:
    """Build every function of `stack_file` in Docker, to run without of-watchdog.

    The Dockerfile gets ``build_args`` of stack.yaml. The variable CHIRON_BASE_IMAGE replaces the
    base image of functions that name none.
    """
    base = os.environ.get("CHIRON_BASE_IMAGE")
    common = {"BASE_IMAGE": base} if base else {}
    _build_all(stack_file, lambda source, given: build_in_docker(source, TEMPLATES, common | given))


BUILDERS: Mapping[Backend, Builder] = {"process": build_local, "docker": build_docker}


def _build_all(
    stack_file: Path, build_one: Callable[[FunctionSource, dict[str, str]], object]
) -> None:
    for name, function in read_stack(stack_file, os.environ).functions.items():
        if function.skip_build:
            continue
        folder = stack_file.parent / function.handler
        check_links(folder, stack_file.parent, name)
        template = stack_file.parent / "template" / function.lang
        source = FunctionSource(name, function.image, function.lang, folder, template)
        try:
            build_one(source, dict(function.build_args))
        except ChironError as error:
            raise ChironError(
                error.code, error.message, functions=[name], status=error.status
            ) from None
        except OSError as error:  # what reading the function raises is a ChironError
            message = (
                f"{error.filename} cannot be written: {error.strerror}: set CHIRON_HOME to a "
                "folder that can"
            )
            raise ChironError("home-unusable", message) from None

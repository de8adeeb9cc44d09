"""Builds the images of a stack.yaml where the gateway will look for them."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from gateway import paths
from gateway.build import FunctionSource, build
from gateway.docker_build import build_in_docker
from gateway.errors import GatewayError
from gateway.images import ImageStore
from gateway.names import BackendName as Backend
from generator.deploy import Builder
from openfaas.stack import read_stack
from templates import TEMPLATES
from workflow.errors import ChironError
from workflow.folder import check_links

#: How the embedded gateway calls itself in /system/info.
EMBEDDED_PROVIDER = "chiron-embedded"
_BASE_IMAGE_VARIABLE = "CHIRON_BASE_IMAGE"


def build_local(stack_file: Path) -> None:
    """Build every function of `stack_file` into the embedded gateway's image store.

    As with faas-cli, those with ``skip_build`` are left out: their images are there already.

    Raises
    ------
    ChironError
        ``bad-link``, or the gateway's own error, with the function's name; the images before it
        stay built.
    """
    store = ImageStore(paths.images())
    _build_all(stack_file, lambda source, _: build(source, TEMPLATES, store))


def build_docker(stack_file: Path) -> None:
    """Build every function of `stack_file` in Docker, to be run without of-watchdog.

    ``build_args`` of stack.yaml are those of the Dockerfile; the variable CHIRON_BASE_IMAGE names
    another base image for all functions that do not.

    Raises
    ------
    ChironError
        ``bad-link``, or the gateway's own error, with the function's name; the images before it
        stay built.
    """
    base = os.environ.get(_BASE_IMAGE_VARIABLE)
    common = {"BASE_IMAGE": base} if base else {}
    _build_all(stack_file, lambda source, given: build_in_docker(source, TEMPLATES, common | given))


BUILDERS: Mapping[Backend, Builder] = {"process": build_local, "docker": build_docker}


def _build_all(
    stack_file: Path, build_one: Callable[[FunctionSource, dict[str, str]], object]
) -> None:
    for name, function in read_stack(stack_file, os.environ).functions.items():
        if function.skip_build:
            continue
        check_links(stack_file.parent / function.handler, stack_file.parent, name)
        source = FunctionSource(
            name=name,
            image=function.image,
            lang=function.lang,
            handler=stack_file.parent / function.handler,
        )
        try:
            build_one(source, dict(function.build_args))
        except GatewayError as error:
            raise ChironError(
                error.code, error.message, functions=[name], status=error.status
            ) from None

"""Builds the images of a stack.yaml where the gateway will look for them."""

from __future__ import annotations

import os
from pathlib import Path

from gateway import paths
from gateway.build import FunctionSource, build
from gateway.errors import GatewayError
from gateway.images import ImageStore
from openfaas.stack import read_stack
from templates import TEMPLATES
from workflow.errors import ChironError

#: How the embedded gateway calls itself in /system/info.
EMBEDDED_PROVIDER = "chiron-embedded"


def build_local(stack_file: Path) -> None:
    """Build every function of `stack_file` into the embedded gateway's image store.

    As with faas-cli, those with ``skip_build`` are left out: their images are there already.

    Raises
    ------
    ChironError
        The gateway's own error, with the function's name; the images before it stay built.
    """
    stack = read_stack(stack_file, os.environ)
    store = ImageStore(paths.images())
    for name, function in stack.functions.items():
        if function.skip_build:
            continue
        source = FunctionSource(
            name=name,
            image=function.image,
            lang=function.lang,
            handler=stack_file.parent / function.handler,
        )
        try:
            build(source, TEMPLATES, store)
        except GatewayError as error:
            raise ChironError(error.code, error.message, functions=[name]) from None

"""Builds the images of a stack.yaml where the gateway will look for them."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

from gateway import paths
from gateway.build import LANGUAGES, FunctionSource, build
from gateway.errors import GatewayError
from gateway.images import ImageStore
from openfaas.client import Gateway
from openfaas.stack import read_stack
from templates import TEMPLATES
from workflow.errors import ChironError

#: How the embedded gateway calls itself in /system/info.
EMBEDDED_PROVIDER = "chiron-embedded"


def build_local(stack_file: Path, images: Path | None = None) -> list[str]:
    """Build every function of `stack_file` into the embedded gateway's image store.

    Returns the names of the images. ``bad-lang``, ``no-handler``, ``bad-handler`` and
    ``requirements`` errors name the function; the images before it stay built.
    """
    stack = read_stack(stack_file, {})
    store = ImageStore(images or paths.images())
    built = []
    for name, function in stack.functions.items():
        source = FunctionSource(
            name=name,
            image=function.image,
            lang=function.lang,
            handler=stack_file.parent / function.handler,
        )
        try:
            built.append(build(source, TEMPLATES, store).name)
        except GatewayError as error:
            raise ChironError(error.code, error.message, functions=[name]) from None
    return built


__all__ = ["EMBEDDED_PROVIDER", "LANGUAGES", "build_local"]

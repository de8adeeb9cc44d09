"""`chiron build`: builds the images of a stack.yaml where the gateway finds them."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.output import next_step, progress
from chiron.cli.place import BUILDERS, builder
from chiron.gateway.names import BackendName as Backend
from chiron.openfaas.stack import read_stack


@click.command("build")
@click.option(
    "-f",
    "--yaml",
    "stack_file",
    type=click.Path(path_type=Path),
    default="stack.yaml",
    show_default=True,
    help="Which functions to build.",
)
@options.backend
def command(stack_file: Path, backend: Backend | None) -> None:
    """Build the images of a stack.yaml for the gateway that OPENFAAS_URL names.

    For the embedded gateway they go into its store, or into Docker. For another gateway faas-cli
    builds them and pushes them to their registry. If no gateway answers, they are for the registry
    that OPENFAAS_PREFIX names, or else for the embedded gateway.

    \b
    Example:
      chiron build -f build/stack.yaml
      chiron build -f build/stack.yaml --backend docker
    """
    functions = read_stack(stack_file, os.environ).functions
    build = BUILDERS[backend] if backend else builder()
    build(stack_file)
    for name in functions:
        progress(f"built {name}")
    next_step(shlex.join(["faas-cli", "deploy", "-f", str(stack_file)]))

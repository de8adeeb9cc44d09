"""`chiron build`: the images of a stack.yaml, for the embedded gateway's processes or Docker."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cli import options
from cli.images import BUILDERS
from cli.output import next_step, progress
from gateway.names import BackendName as Backend
from openfaas.stack import read_stack


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
    """Build the images of a stack.yaml for the embedded gateway, into its store or into Docker.

    \b
    Example:
      chiron build -f build/stack.yaml
      chiron build -f build/stack.yaml --backend docker
    """
    BUILDERS[backend or "process"](stack_file)
    for name in read_stack(stack_file, os.environ).functions:
        progress(f"built {name}")
    next_step(f"faas-cli deploy -f {stack_file}")

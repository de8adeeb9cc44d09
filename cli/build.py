"""`chiron build`: the images of a stack.yaml, for the embedded gateway."""

from __future__ import annotations

import os
from pathlib import Path

import click

from cli.images import build_local
from cli.output import next_step, progress
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
def command(stack_file: Path) -> None:
    """Build the images of a stack.yaml into the embedded gateway's store.

    \b
    Example:
      chiron build -f build/stack.yaml
    """
    build_local(stack_file)
    for name in read_stack(stack_file, os.environ).functions:
        progress(f"built {name}")
    next_step(f"faas-cli deploy -f {stack_file}")

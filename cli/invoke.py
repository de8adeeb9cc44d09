"""`chiron invoke`: runs a deployed workflow on the request that comes on stdin."""

from __future__ import annotations

import json
import sys
from typing import get_args

import click

from cli import options
from cli.output import progress
from cli.place import connect
from generator.invoke import find_invoker
from workflow.plan import Model


@click.command("invoke")
@click.argument("workflow")
@click.option(
    "--model", type=click.Choice(get_args(Model)), help="Which one, if several are there."
)
@options.gateway
@options.tls_no_verify
@options.as_json
def command(
    workflow: str, model: str | None, gateway: str | None, tls_no_verify: bool, as_json: bool
) -> None:
    """Run the deployed WORKFLOW; its request is read from stdin, its answer goes to stdout.

    \b
    Example:
      chiron invoke finra < benchmarks/finra/payload.json
    """
    with (
        connect(gateway, local=None, tls_no_verify=tls_no_verify) as launcher,
        find_invoker(launcher.gateway, workflow, model) as invoker,
    ):
        answer = invoker.invoke(sys.stdin.buffer.read())
    if as_json:
        click.echo(json.dumps({"output": answer.output, "latency_ms": answer.latency_ms}))
    else:
        click.echo(answer.output)
    progress(f"{answer.latency_ms:.1f} ms")

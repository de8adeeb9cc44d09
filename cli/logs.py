"""`chiron logs`: what the functions of a deployed workflow print, across its wraps."""

from __future__ import annotations

import click

from cli import options
from cli.place import connect
from generator.deployed import wraps_of
from openfaas.objects import LogLine


@click.command("logs")
@click.argument("workflow")
@click.argument("function", required=False)
@options.deployed_model
@click.option(
    "--tail", type=click.IntRange(min=1), default=100, show_default=True, help="Lines of each wrap."
)
@options.gateway
@options.tls_no_verify
def command(
    workflow: str,
    function: str | None,
    model: str | None,
    tail: int,
    gateway: str | None,
    tls_no_verify: bool,
) -> None:
    """Print the last lines of the deployed WORKFLOW, or of one FUNCTION of it, in order of time.

    \b
    Example:
      chiron logs finra marketdata
    """
    with connect(gateway, local=None, tls_no_verify=tls_no_verify) as launcher:
        names = wraps_of(launcher.gateway, workflow, model)
        lines = [line for name in names for line in launcher.gateway.logs(name, tail)]
    for line in sorted(lines, key=lambda line: line.timestamp):
        if function is None or _is_of(line, function):
            click.echo(f"{line.timestamp} {line.name} {line.text}")


def _is_of(line: LogLine, function: str) -> bool:
    """Whether `function` printed the line: a wrap says whose it is."""
    return f"[{function}] " in line.text

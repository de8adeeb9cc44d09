"""`chiron logs`: prints the log lines of a deployed workflow's functions from all wraps."""

from __future__ import annotations

import click

from chiron.cli import options
from chiron.cli.output import plain
from chiron.cli.place import Place, place
from chiron.deployment.deployed import called_by, check_member, wraps_of
from chiron.deployment.postmortem import parse_log_line, sort_by_time
from chiron.openfaas.objects import LogLine


@click.command("logs")
@options.deployed_workflow
@click.argument("function", required=False)
@options.deployed_planner
@click.option("--execution", metavar="ID", help="Only the lines of this execution (its X-Call-Id).")
@click.option(
    "--tail",
    type=options.WholeNumber(min=1),
    default=100,
    show_default=True,
    help="Lines of each wrap.",
)
@click.option(
    "--raw", is_flag=True, help="Control characters as they are: they may command the terminal."
)
@place()
def command(
    workflow: str,
    function: str | None,
    planner: str | None,
    execution: str | None,
    tail: int,
    raw: bool,
    place: Place,
) -> None:
    """Print the last lines of the deployed WORKFLOW, or of one FUNCTION of it, in order of time.

    \b
    Example:
      chiron logs finra marketdata
      chiron logs finra --execution 1a2b3c4d
    """
    with place.connect() as launcher:
        wraps = wraps_of(launcher.gateway, workflow, planner)
        if function is not None:
            check_member(launcher.gateway, wraps, function)
        names = (*wraps, *called_by(launcher.gateway, wraps))
        lines = [line for name in names for line in launcher.gateway.logs(name, tail)]
    wanted = [line for line in lines if _is_of(line, function, execution)]
    for text in sort_by_time(wanted):
        click.echo((text if raw else plain(text, kept="\t")).encode())


def _is_of(line: LogLine, function: str | None, execution: str | None) -> bool:
    """Whether the line comes from `function` in `execution`; a wrap marks its lines with both.

    Lines of a function that is deployed on its own have no execution.
    """
    name, ident, _ = parse_log_line(line)
    name = name or line.name
    right = execution is None or (ident != "" and execution.startswith(ident))
    return function in (None, name) and right

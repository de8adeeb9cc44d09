"""`chiron logs`: prints the log lines of a deployed workflow's functions from all wraps."""

from __future__ import annotations

import click

from chiron.cli import options
from chiron.cli.output import plain, progress
from chiron.cli.place import Place, place
from chiron.deployment.deployed import called_by, check_member, wraps_of
from chiron.deployment.postmortem import parse_log_line, sort_by_time
from chiron.openfaas.objects import LogLine

#: The last lines of each wrap among which those of a function or an execution are looked for.
_SEARCHED = 10_000


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
        read = max(tail, 0 if function is execution is None else _SEARCHED)
        found = list[LogLine]()
        for name in names:
            lines = launcher.gateway.logs(name, read)
            found += [line for line in lines if _is_of(line, function, execution)][-tail:]
    if not found:
        whole = function is execution is None
        missed = "no line so far" if whole else f"no such line is among the last {read}"
        progress(f"{missed} of {', '.join(names)}")
    for text in sort_by_time(found):
        click.echo((text if raw else plain(text, kept="\t")).encode())


def _is_of(line: LogLine, function: str | None, execution: str | None) -> bool:
    """Whether the line comes from `function` in `execution`; a wrap marks its lines with both.

    Lines of a function that is deployed on its own have no execution.
    """
    name, ident, _ = parse_log_line(line)
    name = name or line.name
    right = execution is None or (ident != "" and execution.startswith(ident))
    return function in (None, name) and right

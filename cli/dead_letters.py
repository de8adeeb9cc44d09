"""`chiron dead-letters`: shows, retries or discards dead letters of durable buckets."""

from __future__ import annotations

import json
from typing import Any

import click

from chiron.cli import options
from chiron.cli.output import progress, table
from chiron.cli.place import Place, place
from chiron.deployment.deployed import with_functions, wraps_of
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.errors import ChironError
from chiron.workflow.tracing import KEY_ANNOTATION, trace_header

_PATH = "/_/dead-letters"
_COLUMNS = ["name", "killed replicas", "bytes in memory", "begins with"]
#: Characters that are shown of an error.
_SHOWN = 200


@click.command("dead-letters")
@options.deployed_workflow
@click.argument("names", nargs=-1)
@options.deployed_planner
@click.option("--retry", is_flag=True, help="Run them again.")
@click.option("--discard", is_flag=True, help="Delete them.")
@place()
@options.as_json
def command(
    workflow: str,
    names: tuple[str, ...],
    planner: str | None,
    retry: bool,
    discard: bool,
    place: Place,
    as_json: bool,
) -> None:
    """Show the dead letters of the deployed WORKFLOW, or retry or discard those with these NAMES.

    A dead letter is a request, or a window that has fired, that killed its replica three times or
    takes more memory than a replica has. Without NAMES all are meant.

    \b
    Example:
      chiron dead-letters ads
      chiron dead-letters ads --discard 115412563984384001
    """
    if retry and discard:
        raise click.UsageError("--retry and --discard: choose one")
    verb = "retry" if retry else "discard" if discard else None
    with place.connect() as launcher:
        entry = _entry(launcher.gateway, workflow, planner)
        before = _ask(launcher.gateway, entry, ["show"])
        missing = sorted(set(names) - {letter["name"] for letter in before})
        if missing:
            message = f"{workflow} has no dead letter {', '.join(missing)}"
            raise ChironError("no-dead-letter", message, status=404)
        if verb is not None:
            _ask(launcher.gateway, entry, [verb, *names])
    found = [letter for letter in before if not names or letter["name"] in names]
    if as_json:
        click.echo(json.dumps(found, indent=2))
    if verb is not None:
        does = "runs again" if verb == "retry" else "has forgotten"
        progress(f"{workflow} {does}: {', '.join(letter['name'] for letter in found) or 'nothing'}")
    elif as_json:
        return
    elif found:
        table(f"dead letters of {workflow}", _COLUMNS, map(_row, found))
    else:
        progress(f"{workflow} has no dead letters")


def _entry(gateway: Gateway, workflow: str, planner: str | None) -> FunctionStatus:
    """Return the only wrap of a workflow of buckets. Raises ``not-deployed``."""
    names = wraps_of(gateway, workflow, planner)
    return next(f for _, its in with_functions(gateway) for f in its if f.name in names)


def _ask(gateway: Gateway, entry: FunctionStatus, lines: list[str]) -> list[dict[str, Any]]:
    """Ask the wrap and return its answer. Raises ``no-dead-letters``."""
    key = trace_header(entry.annotations.get(KEY_ANNOTATION, ""))
    answer = gateway.invoke(entry.name, "\n".join(lines).encode(), key, path=_PATH)
    if not answer.ok:
        said = answer.text.strip()[:_SHOWN]
        message = f"{entry.name} shows no dead letters ({answer.status_code}: {said})"
        status = 404 if answer.status_code == 404 else 502  # its buckets are in memory, if any
        raise ChironError("no-dead-letters", message, functions=[entry.name], status=status)
    found: list[dict[str, Any]] = answer.json()
    return found


def _row(letter: dict[str, Any]) -> list[str]:
    begins = json.dumps(letter["begins"][0]) if letter["begins"] else ""  # escapes are escaped
    return [letter["name"], str(letter["killed"]), str(letter["bytes"]), begins[:_SHOWN]]

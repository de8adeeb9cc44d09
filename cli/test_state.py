"""`chiron test-state`: runs a state, or a machine, with mocks instead of its functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from chiron.cli import options
from chiron.cli.output import data
from chiron.workflow.documents import parse_json, read_json
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import default_name
from chiron.workflow.forms import read_source
from chiron.workflow.mocked import Mocked, Mocks, read_context, read_mock, read_mocks


@click.command("test-state")
@click.argument("source", metavar="DIR|FILE", type=click.Path(path_type=Path))
@click.option("--state-name", metavar="STATE", help="Test this state, else the whole machine.")
@click.option("--input", "request", metavar="JSON", default="{}", help="Its input (default: {}).")
@click.option(
    "--mocks",
    "mocks_file",
    type=click.Path(path_type=Path),
    help='What tasks answer: {"STATE": {"0": {"Throw": {"Error": "E"}}, "1-2": {"Return": 5}}}.',
)
@click.option(
    "--mock",
    metavar="JSON",
    help='What the state answers: {"result": JSON} or {"errorOutput": {"error": E, "cause": C}}.',
)
@click.option("--variables", metavar="JSON", default="{}", help="The variables that it sees.")
@click.option(
    "--context",
    metavar="JSON",
    help='The context object that it sees: {"Execution": {"Name": "n"}}.',
)
@click.option(
    "--retrier-retry-count",
    "retries",
    type=options.WholeNumber(min=0),
    default=0,
    help="How often its Retry was used.",
)
def command(
    source: Path,
    state_name: str | None,
    request: str,
    mocks_file: Path | None,
    mock: str | None,
    variables: str,
    context: str | None,
    retries: int,
) -> None:
    """Run a state machine, or one of its states, with mocks of its tasks: for tests in a CI.

    Prints status (SUCCEEDED, FAILED, RETRIABLE or CAUGHT_ERROR), output, nextState, error and
    cause, as AWS's TestState. No wait takes time. An error of the machine is an answer: the exit
    status is 0.

    \b
    Example:
      chiron test-state machine.json --state-name Pay --mock '{"result": 5}'
    """
    for option, given in (("--mock", mock), ("--context", context)):
        if state_name is None and given is not None:
            raise click.UsageError(f"{option} is of one state: name it with --state-name")
    if mock is not None and mocks_file is not None:
        raise click.UsageError("--mock and --mocks exclude each other: keep one")
    machine = _read(source)
    content = json.dumps(parse_json(request, "--input")).encode()
    mocks = Mocks({}) if mocks_file is None else read_mocks(read_json(mocks_file, "mocks"))
    if state_name is None:
        told = machine.run(content, mocks)
    else:
        if mock is not None:
            mocks = read_mock(state_name, parse_json(mock, "--mock"))
        seen = read_context(parse_json(context, "--context")) if context is not None else None
        told = machine.test(state_name, content, mocks, _variables(variables), retries, seen)
    data(json.dumps(told, indent=1, ensure_ascii=False) + "\n")


def _variables(text: str) -> dict[str, Any]:
    found = parse_json(text, "--variables")
    if not isinstance(found, dict):
        raise ChironError("bad-document", "--variables has to be an object")
    return found


def _read(source: Path) -> Mocked:
    written = read_source(source)
    if not isinstance(written.document, dict) or "States" not in written.document:
        raise ChironError("bad-document", f"{written.file} is no state machine: it has no States")
    with written.placing():
        return Mocked(written.document, default_name(source))

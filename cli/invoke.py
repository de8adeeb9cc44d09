"""`chiron invoke`: runs a deployed workflow on the request from stdin."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from chiron.cli import options
from chiron.cli.output import data, progress, warn, write_timeline
from chiron.cli.place import Place, place
from chiron.cli.told import untold
from chiron.deployment.invoke import find_invoker
from chiron.deployment.postmortem import explain_failures
from chiron.services import state_folder
from chiron.workflow.data import bytes_of, in_json


@click.command("invoke")
@options.deployed_workflow
@options.deployed_planner
@options.trace
@options.timeline
@place()
@options.as_json
def command(
    workflow: str,
    planner: str | None,
    trace: Path | None,
    timeline_file: Path | None,
    place: Place,
    as_json: bool,
) -> None:
    """Run the deployed WORKFLOW; its request is read from stdin, its answer goes to stdout.

    The answer is byte for byte in a file or a pipe; on a terminal control characters are escaped.
    A star marks an unreliable prediction. The reason is printed once; --json always has it.

    \b
    Example:
      chiron invoke finra < benchmarks/finra/payload.json
    """
    traced = trace is not None or timeline_file is not None
    with (
        place.connect() as launcher,
        explain_failures(launcher.gateway),
        find_invoker(launcher.gateway, workflow, planner) as invoker,
    ):
        prediction = invoker.prediction
        answer = invoker.invoke(read_request(), trace=traced)
    if traced:
        write_timeline(answer.timeline, trace, timeline_file)
    if as_json:
        predicted = prediction.model_dump(mode="json") if prediction else None
        output = in_json(answer.output)
        told = {"output": output, "latency_ms": answer.latency_ms, "predicted": predicted}
        click.echo(json.dumps(told))
    else:
        data(bytes_of(answer.output) + b"\n")
    beside = f" (predicted: {prediction.alone.shown} ms)" if prediction else ""
    progress(f"{answer.latency_ms:.1f} ms{beside}")
    if prediction:
        warn(untold(f"{launcher.gateway.url} {workflow}", prediction.warnings, state_folder()))


def read_request() -> bytes:
    """Read the request from stdin; on a terminal, tell the user to type it."""
    if sys.stdin.isatty():
        progress("reading the request from the terminal: end it with Ctrl-D")
    return sys.stdin.buffer.read()

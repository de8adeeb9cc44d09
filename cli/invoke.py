"""`chiron invoke`: runs a deployed workflow on the request that comes on stdin."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from cli import options
from cli.output import progress, warn
from cli.place import Place, place
from deployment.invoke import Answer, find_invoker
from deployment.measured_trace import measured_trace
from deployment.postmortem import explained
from workflow.data import bytes_of
from workflow.documents import write_atomically
from workflow.errors import ChironError


@click.command("invoke")
@click.argument("workflow")
@options.deployed_planner
@click.option(
    "--trace",
    type=options.Output(),
    help="Write when each handler ran, for Perfetto, as predict --trace does.",
)
@place()
@options.as_json
def command(
    workflow: str, planner: str | None, trace: Path | None, place: Place, as_json: bool
) -> None:
    """Run the deployed WORKFLOW; its request is read from stdin, its answer goes to stdout.

    \b
    Example:
      chiron invoke finra < benchmarks/finra/payload.json
    """
    with (
        place.connect() as launcher,
        explained(launcher.gateway),
        find_invoker(launcher.gateway, workflow, planner) as invoker,
    ):
        prediction = invoker.prediction
        answer = invoker.invoke(sys.stdin.buffer.read(), trace=trace is not None)
    if trace is not None:
        _write(trace, answer, workflow)
    if as_json:
        predicted = prediction.model_dump(mode="json") if prediction else None
        told = {"output": answer.output, "latency_ms": answer.latency_ms, "predicted": predicted}
        click.echo(json.dumps(told))
    else:
        click.echo(bytes_of(answer.output))
    beside = f" (predicted: {prediction.shown} ms)" if prediction else ""
    progress(f"{answer.latency_ms:.1f} ms{beside}")
    warn(prediction.warnings if prediction else ())


def _write(file: Path, answer: Answer, workflow: str) -> None:
    if not answer.timeline:
        raise ChironError(
            "no-timeline", f"no wrap sees all of {workflow} as one-to-one: leave out --trace"
        )
    write_atomically(file, json.dumps(measured_trace(answer.timeline, answer.latency_ms)) + "\n")
    progress(f"wrote {file}: open it in Perfetto, beside chiron predict --trace")

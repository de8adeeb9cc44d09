"""`chiron list`: lists the deployed workflows."""

from __future__ import annotations

import click

from chiron.cli import options
from chiron.cli.output import emit, progress, table, warn
from chiron.cli.place import Place, place
from chiron.cli.told import untold
from chiron.deployment.deployed import deployed
from chiron.generator.annotations import DeployedPrediction
from chiron.services import state_folder

_COLUMNS = ["workflow", "planner", "functions", "CPUs", "predicted ms", "replicas", "calls"]


@click.command("list")
@place()
@options.as_json
def command(place: Place, as_json: bool) -> None:
    """List the workflows that are deployed.

    A star marks an unreliable prediction. The reason is printed once; --json always has it.

    \b
    Example:
      chiron list
    """
    with place.connect() as launcher:
        found = deployed(launcher.gateway)
    if as_json:
        emit(found, None, as_json)
        return
    rows = [
        [
            each.workflow,
            each.planner,
            f"{len(each.functions)}" + (f" + {len(each.called)} called" if each.called else ""),
            *_predicted(each.predicted),
            f"{each.available}/{each.replicas}",
            f"{each.calls:g}",
        ]
        for each in found.deployments
    ]
    if rows:
        table("deployed workflows", _COLUMNS, rows)
        warn(
            line
            for each in found.deployments
            if each.predicted
            for line in untold(
                f"{launcher.gateway.url} {each.workflow}", each.predicted.warnings, state_folder()
            )
        )
    else:
        progress("no workflow is deployed: chiron deploy does that")


def _predicted(prediction: DeployedPrediction | None) -> tuple[str, str]:
    if prediction is None:
        return "-", "-"
    return str(prediction.cpus), prediction.shown

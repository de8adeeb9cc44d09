"""`chiron remove`: takes a workflow off the gateway."""

from __future__ import annotations

import click

from chiron.cli import options
from chiron.cli.output import progress
from chiron.cli.place import Place, place
from chiron.deployment.deploy import remove_all
from chiron.deployment.deployed import wraps_of


@click.command("remove")
@click.argument("workflow")
@options.deployed_planner
@place()
def command(workflow: str, planner: str | None, place: Place) -> None:
    """Remove the functions of the deployed WORKFLOW.

    Supporting functions of its stack.yaml stay, as others may call them.

    \b
    Example:
      chiron remove finra
    """
    with place.connect() as launcher:
        names = wraps_of(launcher.gateway, workflow, planner)
        remove_all(launcher.gateway, list(names))
    progress(f"removed {', '.join(names)}")

"""`chiron remove`: removes a workflow from the gateway."""

from __future__ import annotations

import click

from chiron.cli import options
from chiron.cli.output import progress
from chiron.cli.place import Place, place
from chiron.deployment.deploy import remove_all
from chiron.deployment.deployed import only_for, staying, wraps_of


@click.command("remove")
@options.deployed_workflow
@options.deployed_planner
@place()
def command(workflow: str, planner: str | None, place: Place) -> None:
    """Remove the functions of the deployed WORKFLOW.

    Functions that were deployed because its tasks use them go too, unless other workflows use them.
    Functions that were there before stay, and those that only handlers call; so does the secret
    chiron-direct.

    \b
    Example:
      chiron remove finra
    """
    with place.connect() as launcher:
        wraps = wraps_of(launcher.gateway, workflow, planner)
        names = (*wraps, *only_for(launcher.gateway, wraps))
        remove_all(launcher.gateway, names)
        left = staying(launcher.gateway)
    progress(f"removed {', '.join(names)}")
    if left:
        mend = " && ".join(f"faas-cli remove -g {launcher.gateway.url} {name}" for name in left)
        progress(f"no workflow is left, but functions that were deployed beside one: {mend}")

"""`chiron schema`: prints the JSON schemas of artefacts."""

from __future__ import annotations

import json

import click

from chiron.scheduler.prices import Prices
from chiron.workflow.constraints import Constraints
from chiron.workflow.documents import Document
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile
from chiron.workflow.timeline import Timeline

_ARTEFACTS: dict[str, type[Document]] = {
    "plan": Plan,
    "platform": Platform,
    "profile": Profile,
    "constraints": Constraints,
    "prices": Prices,
    "timeline": Timeline,
}


@click.command("schema")
@click.argument("artefact", type=click.Choice(list(_ARTEFACTS)))
def command(artefact: str) -> None:
    """Print the JSON schema of an ARTEFACT.

    \b
    Example:
      chiron schema plan
    """
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema"}
    click.echo(json.dumps(schema | _ARTEFACTS[artefact].model_json_schema(), indent=1))

"""`chiron convert`: writes a workflow in another form, or as a picture."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from chiron.cli import options
from chiron.cli.output import data, progress, warn
from chiron.workflow.chart import chart_of
from chiron.workflow.chart_mermaid import mermaid
from chiron.workflow.chart_svg import svg
from chiron.workflow.conversion import as_plain, as_states
from chiron.workflow.documents import write_atomically
from chiron.workflow.folder import default_name, parse_workflow
from chiron.workflow.forms import known_form, read_source
from chiron.workflow.model import Workflow
from chiron.workflow.names import AsWritten


@click.command("convert")
@click.argument("source", metavar="DIR|FILE", type=click.Path(path_type=Path))
@click.option(
    "--to",
    "form",
    type=click.Choice(["asl", "dag", "svg", "mermaid"]),
    required=True,
    help="States Language, a plain DAG, or a picture: SVG, or a state diagram of Mermaid.",
)
@click.option("-o", "--output", type=options.Output(), help="The file to write, else stdout.")
def command(source: Path, form: str, output: Path | None) -> None:
    """Write a workflow, of any form, in another form or as a picture.

    Refused is what the other form cannot express: a plain DAG does not decide, and a state machine
    runs tasks in series and in parallel branches.

    \b
    Example:
      chiron convert benchmarks/finra --to svg -o finra.svg
    """
    workflow, document = _read(source)
    warn(workflow.warnings)
    if form in _PICTURES:
        text = _PICTURES[form](chart_of(workflow), workflow.name)
    else:
        text = _written(workflow, document, form)
    if output is None:
        data(text)
    else:
        write_atomically(output, text)
        progress(f"wrote {output}")


def _read(source: Path) -> tuple[Workflow, dict[str, Any]]:
    """Read the workflow in a folder or a file; return it and its document in a form of ours."""
    written = read_source(source)
    with written.placing():
        workflow = parse_workflow(written.document, default_name(source), AsWritten())
        return workflow, known_form(written.document).document


def _written(workflow: Workflow, document: dict[str, Any], form: str) -> str:
    """Return `document` in another form of documents; unchanged if it has that form."""
    field, name, named, convert = _FORMS[form]
    if field not in document:
        kept = {name: document[named]} if named in document else {}
        document = kept | convert(workflow)
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


#: What each form of documents has, what it calls the name of a workflow, and what the other form
#: calls that; and what makes one of a workflow.
_FORMS: dict[str, tuple[str, str, str, Callable[[Workflow], dict[str, Any]]]] = {
    "asl": ("States", "Name", "name", as_states),
    "dag": ("tasks", "name", "Name", as_plain),
}
_PICTURES = {"svg": svg, "mermaid": mermaid}

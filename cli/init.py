"""`chiron init`: a workflow folder of the functions that a stack.yaml has."""

from __future__ import annotations

import json
import os
import shlex
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from chiron.cli import options
from chiron.cli.output import next_step, progress
from chiron.openfaas.languages import called_in, find_handler, language_of
from chiron.openfaas.stack import StackFile, read_stack
from chiron.workflow.documents import write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import FUNCTIONS_FILE, WorkflowFolder
from chiron.workflow.forms import WORKFLOW_FILE, known_form, read_written, workflow_file
from chiron.workflow.names import FunctionNames


@click.command("init")
@options.workflow_folder
@click.option(
    "--states",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A workflow of any form to begin with; what is no JSON is translated.",
)
def command(folder: Path, states: Path | None) -> None:
    """Make DIR, which has a stack.yaml, a workflow folder; files that are there stay as they are.

    Without --states the functions of stack.yaml are called one after another, in their order
    there: edit workflow.json.

    \b
    Example:
      chiron init my-functions --states machine.json
    """
    stack = read_stack(folder / "stack.yaml", os.environ)
    document = _translated(states) if states else _chain(stack)
    _write(workflow_file(folder) or folder / WORKFLOW_FILE, document)
    _write(folder / "payload.json", {})
    renamed = FunctionNames.proposal(_resources(document), tuple(stack.functions))
    if renamed:
        _write(folder / FUNCTIONS_FILE, renamed)
    missing = _missing(WorkflowFolder.open(folder), stack, folder)
    for line in missing:
        progress(f"missing: {line}")
    if not missing:
        next_step(shlex.join(["chiron", "deploy", str(folder), "--slo", "200ms", "--local"]))


def _translated(file: Path) -> dict[str, Any]:
    written = read_written(file)
    with written.placing():
        return known_form(written.document).document


def _chain(stack: StackFile) -> dict[str, Any]:
    inside = [name for name, function in stack.functions.items() if language_of(function)]
    names = inside or list(stack.functions)
    if not names:
        message = "stack.yaml has no function: add one with faas-cli new"
        raise ChironError("no-tasks", message, path="functions")
    edges = [list(pair) for pair in pairwise(names)]
    return {"tasks": {name: name for name in names}, "edges": edges}


def _resources(document: Any) -> list[str]:
    """Whatever tasks call their functions, at any depth of the document."""
    if isinstance(document, list):
        return [found for item in document for found in _resources(item)]
    if not isinstance(document, dict):
        return []
    tasks = document.get("tasks")
    own = [*tasks.values()] if isinstance(tasks, dict) else [document.get("Resource")]
    inner = [found for value in document.values() for found in _resources(value)]
    return [*(name for name in own if isinstance(name, str)), *inner]


def _missing(opened: WorkflowFolder, stack: StackFile, folder: Path) -> list[str]:
    found, called = [], called_in(stack, opened.workflow.functions)
    for name in opened.workflow.functions:
        if name in called:
            if name not in stack.functions:
                found.append(f"function {name} in stack.yaml, unless it is deployed already")
            continue
        try:
            find_handler(stack, name, folder)
        except ChironError as error:
            found.append(str(error))
    return found


def _write(file: Path, content: Any) -> None:
    if file.exists():
        progress(f"{file} is there and stays")
        return
    write_atomically(file, json.dumps(content, indent=1) + "\n")
    progress(f"wrote {file}")

"""`chiron init`: makes a workflow folder from the functions of a stack.yaml."""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

from chiron.cli import options
from chiron.cli.output import next_step, progress
from chiron.openfaas.handlers import handler_folder
from chiron.openfaas.languages import called_in, find_handler, kept_out, language_of, settled
from chiron.openfaas.stack import StackFile, read_stack
from chiron.openfaas.store_function import with_store_function
from chiron.workflow.asl_resources import replacing, stored_action
from chiron.workflow.documents import write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import FUNCTIONS_FILE, WorkflowFolder, parse_workflow, stack_file_in
from chiron.workflow.forms import (
    WORKFLOW_FILE,
    WORKFLOW_FILES,
    known_form,
    read_written,
    workflow_file,
)
from chiron.workflow.names import AsWritten, FunctionNames

#: A name for which tools such as SAM and Terraform write a value where they deploy a machine.
_PLACEHOLDER = re.compile(r"\$\{\w+\}")
#: How the names of files end that may have a workflow.
_DOCUMENTS = {Path(name).suffix for name in WORKFLOW_FILES}


@click.command("init")
@options.workflow_folder
@click.option(
    "--states",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="FILE",
    help="A workflow of any form to begin with: it becomes workflow.json.",
)
def command(folder: Path, states: Path | None) -> None:
    """Make DIR, which has a stack.yaml, a workflow folder; files that are there stay as they are.

    Without --states the functions of stack.yaml are called one after another, in their order
    there: edit workflow.json.

    \b
    Example:
      chiron init my-functions --states machine.json
    """
    stack = settled(read_stack(stack_file_in(folder), os.environ), folder)
    written = workflow_file(folder)
    source = states or written
    names = _Callable(stack.functions)
    document, called = _translated(source, names) if source else _chain(stack)
    if states and written and document != _translated(written, names)[0]:
        message = (
            f"{written} is there already, and is not {states}: remove one, or leave out --states"
        )
        raise ChironError("two-workflows", message)
    _write(written or folder / WORKFLOW_FILE, document)
    _write(folder / "payload.json", {}, ": put an example request there in place of {}")
    renamed = names.table | FunctionNames.proposal(called, tuple(stack.functions))
    if renamed:
        _write(folder / FUNCTIONS_FILE, renamed)
    unused = () if source else _machines(folder)
    for line in (*_merged(renamed), *_placeholders(document, renamed), *unused):
        progress(f"warning: {line}")
    missing = _missing(WorkflowFolder.open(folder), stack, folder, renamed)
    for line in missing:
        progress(f"missing: {line}")
    if not missing:
        next_step(shlex.join(["chiron", "deploy", str(folder), "--slo", "200ms", "--local"]))


class _Callable(AsWritten):
    """The names as written; any service except a store may be called as a function.

    A name chosen at run time is one of `functions`; `table` then has them.
    """

    def __init__(self, functions: Iterable[str]) -> None:
        super().__init__()
        self._functions = functions
        self.table = dict[str, str]()

    def named(self) -> dict[str, str]:
        self.table = {name: name for name in self._functions}
        return self.table

    def knows(self, given: str) -> bool:
        return stored_action(given) is None


def _translated(file: Path, names: _Callable) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the workflow in `file` as JSON, and the names that its tasks use for functions."""
    written = read_written(file)
    with written.placing():
        document = known_form(written.document).document
        workflow = parse_workflow(written.document, functions=names)
    return document, workflow.functions


def _chain(stack: StackFile) -> tuple[dict[str, Any], tuple[str, ...]]:
    inside = [name for name, function in stack.functions.items() if language_of(function)]
    names = inside or list(stack.functions)
    if not names:
        message = "stack.yaml has no function: add one with faas-cli new"
        raise ChironError("no-tasks", message, path="functions")
    for name, function in stack.functions.items():
        if name not in inside:
            why = kept_out(function)
            progress(
                f"warning: {name} is no task of the workflow: {why}; add {name} to the workflow "
                "to have it called over HTTP"
                if inside
                else f"warning: {name} stays a function that is called over HTTP: {why}"
            )
    edges = [list(pair) for pair in pairwise(names)]
    return {"tasks": {name: name for name in names}, "edges": edges}, tuple(names)


def _merged(renamed: dict[str, str]) -> Iterator[str]:
    """Yield a line for each function that the workflow calls by several names."""
    for name in dict.fromkeys(renamed.values()):
        given = [each for each, proposed in renamed.items() if proposed == name]
        if len(given) > 1:
            yield f"function {name} stands for {', '.join(given)}: edit {FUNCTIONS_FILE} if not"


def _placeholders(document: dict[str, Any], renamed: dict[str, str]) -> Iterator[str]:
    """Yield a line with the placeholders of another tool that name no function."""
    left = set(_PLACEHOLDER.findall(json.dumps(document))) - renamed.keys()
    if left:
        named = ", ".join(sorted(left))
        yield f"{named}: nothing replaces this in {WORKFLOW_FILE}: write the value there"


def _machines(folder: Path) -> Iterator[str]:
    """Yield a line for each state machine in the folder that is not the workflow's first."""
    for file in sorted(folder.iterdir()):
        if file.suffix in _DOCUMENTS:
            with suppress(ChironError):  # it is none
                document = read_written(file).document
                if isinstance(document, dict) and "StartAt" in document:
                    written = folder / WORKFLOW_FILE
                    yield f"{file} is not used: remove {written}, and give {file} to --states"


def _missing(
    opened: WorkflowFolder, stack: StackFile, folder: Path, renamed: dict[str, str]
) -> list[str]:
    stack = with_store_function(stack, opened.workflow.functions)
    found, called = [], called_in(stack, opened.workflow.functions)
    for name in opened.workflow.functions:
        if name not in stack.functions:
            of = {given: replacing(given) for given, its in renamed.items() if its == name}
            duties = (f"; for {given} it {duty}" for given, duty in of.items() if duty)
            where = "in stack.yaml, unless it is deployed already"
            found.append(f"function {name} {where}{''.join(duties)}")
            continue
        try:
            if name not in called:
                find_handler(stack, name, folder)
            elif (function := stack.functions[name]).handler:
                handler_folder(name, function, folder, "with its code")
        except ChironError as error:
            found.append(str(error))
    return found


def _write(file: Path, content: Any, mend: str = "") -> None:
    if file.exists():
        progress(f"{file} is there and stays")
        return
    write_atomically(file, json.dumps(content, indent=1) + "\n")
    progress(f"wrote {file}{mend}")

"""Copies a workflow's folder with another request, or as a graph whose first task emits parts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chiron.workflow.documents import read_json, write_atomically
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.forms import WORKFLOW_FILE, WORKFLOW_FILES, read_written, workflow_file
from chiron.workflow.payloads import PAYLOAD_FILE

#: The field of a request with the number of parts of its data.
PARTS = "parts"
#: Functions of a workflow that cuts, maps each part, and merges.
_SHAPE = 3


def changed(
    folder: WorkflowFolder, request: Mapping[str, Any], out: Path, *, emits: bool
) -> WorkflowFolder:
    """Copy the workflow of `folder` to `out` with another request, and a name that describes it.

    Args:
        request: fields that replace those of payload.json.
        emits: whether to write the graph of `emitting_graph`, whose first task emits the parts.

    Raises ``not-emitting``.
    """
    asked = read_json(folder.path / PAYLOAD_FILE, "object") | dict(request)
    name = changed_name(folder, request, emits)
    if emits:
        document = {"name": name} | emitting_graph(folder, int(asked[PARTS]))
    else:
        given = json.loads(folder.text)
        document = given | {"Name" if "States" in given else "name": name}
    ignored = shutil.ignore_patterns(*WORKFLOW_FILES, PAYLOAD_FILE)
    shutil.copytree(folder.path, out, symlinks=True, ignore=ignored, dirs_exist_ok=True)
    write_atomically(out / WORKFLOW_FILE, json.dumps(document, indent=1) + "\n")
    write_atomically(out / PAYLOAD_FILE, json.dumps(asked) + "\n")
    return WorkflowFolder.open(out)


def changed_name(folder: WorkflowFolder, request: Mapping[str, Any], emits: bool) -> str:
    """Return the name of the changed workflow."""
    differs = [f"{field}-{value}".replace(".", "-") for field, value in request.items()]
    return "-".join([folder.workflow.name, *differs, *["emits"] * emits])


def emitting_graph(folder: WorkflowFolder, parts: int) -> dict[str, Any]:
    """Return the plain DAG of a workflow in DataFlower's form that cuts its data into `parts`.

    In that form a function returns a list, whose items are known when it has ended. In the DAG it
    emits each item: `file-0` is the first, if the function for each item has the input `file`.

    Raises ``not-emitting`` unless the workflow has three functions: the first cuts, the second runs
    for each item, and the third merges the results.
    """
    blocks = _blocks(folder)
    if len(blocks) != _SHAPE:
        raise ChironError(
            "not-emitting",
            f"{folder.path} has {len(blocks)} functions of DataFlower's form, and not one that "
            "cuts, one for each part, and one that merges",
        )
    start, each, data = _flow(blocks, "FOREACH")
    _, merge, _ = _flow(blocks, "MERGE")
    runs = [f"{each}-{number}" for number in range(parts)]
    return {
        "tasks": {start: start, **dict.fromkeys(runs, each), merge: merge},
        "edges": [
            *([f"{start}#{data}-{number}", run] for number, run in enumerate(runs)),
            *([run, merge] for run in runs),
        ],
    }


def _blocks(folder: WorkflowFolder) -> dict[str, Any]:
    """Return function -> its block; empty if the workflow is not in DataFlower's form."""
    file = workflow_file(folder.path)
    functions = read_written(file).document.get("dataflows", {}) if file else {}
    return {name: next(iter(blocks.values())) for name, blocks in functions.items()}


def _flow(blocks: Mapping[str, Any], kind: str) -> tuple[str, str, str]:
    """Return the function with output of type `kind`, its consumer, and the consumer's input."""
    for function, block in blocks.items():
        for given in block["output_datas"].values():
            if given["type"] == kind:
                ((target, taken),) = given["destination"].items()
                ((data,),) = taken.values()
                return function, target, data
    raise ChironError("not-emitting", f"no function gives data of the type {kind}")

"""Copies of a workflow's folder, for another request, or so that its first task emits its parts."""

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

#: The field of a request that says how many parts its data is cut into.
PARTS = "parts"
#: Functions of a workflow that cuts, runs one for each part, and merges.
_SHAPE = 3


def changed(
    folder: WorkflowFolder, request: Mapping[str, Any], out: Path, *, emits: bool
) -> WorkflowFolder:
    """The workflow of `folder` in the folder `out`, for another request, by a name that tells it.

    Args:
        request: fields of payload.json that are others.
        emits: whether it is a graph in which the first task emits the parts: see `emitting_graph`.

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
    """What such a workflow is called."""
    differs = [f"{field}-{value}".replace(".", "-") for field, value in request.items()]
    return "-".join([folder.workflow.name, *differs, *["emits"] * emits])


def emitting_graph(folder: WorkflowFolder, parts: int) -> dict[str, Any]:
    """The plain DAG of a workflow in DataFlower's form that cuts its data into so many `parts`.

    In that form the items of a list are known when the function that gives it has ended. Here each
    is emitted, as `file-0` where the function that runs for each takes it as `file`.

    Raises ``not-emitting`` where it is no function, one that runs for each item of a list, and one
    that merges what these give.
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
    """Function -> its block; none where the workflow has another form."""
    file = workflow_file(folder.path)
    functions = read_written(file).document.get("dataflows", {}) if file else {}
    return {name: next(iter(blocks.values())) for name, blocks in functions.items()}


def _flow(blocks: Mapping[str, Any], kind: str) -> tuple[str, str, str]:
    """The function that gives data of the type `kind`, that which takes it, and as what."""
    for function, block in blocks.items():
        for given in block["output_datas"].values():
            if given["type"] == kind:
                ((target, taken),) = given["destination"].items()
                ((data,),) = taken.values()
                return function, target, data
    raise ChironError("not-emitting", f"no function gives data of the type {kind}")

"""Writes a workflow folder from facts of a trace: a function for each task, scaled to fit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import Field

from chiron.evaluation.runtime.deployed import write_stack
from chiron.workflow.documents import Document, read_document, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.payloads import PAYLOAD_FILE

_FOLDER = Path(__file__).parent.parent / "data" / "workflows"
#: The scientific workflows of FaaSFlow's evaluation.
NAMES = ("cycles", "epigenomics", "genome", "soykb")


class TaskFacts(Document):
    """One task: its run time alone, the size of its output, and its predecessors."""

    run_s: float
    output_bytes: int
    after: tuple[str, ...]


class Facts(Document):
    """A traced workflow; each of its first tasks received ``request_bytes``."""

    name: str
    source: str
    request_bytes: int
    tasks: dict[str, TaskFacts]


def facts_of(name: str) -> Facts:
    """Read the facts of the workflow `name`, one of `NAMES`."""
    return read_document(Facts, _FOLDER / f"{name}.json", "facts of a workflow")


#: The code of every task; not imported here, as it reads task.json beside it.
_HANDLER = Path(__file__).with_name("task.py")
#: Rounds of the tasks' loop in a millisecond, on a core of the machine of the stored runs.
ROUNDS_PER_MS = 12_000

Share = Annotated[float, Field(gt=0, le=1)]


class Scaling(Document):
    """Factors of the facts' run times (``time``) and sizes (``size``).

    ``computing`` is the share of its run time that a task computes; it waits for the rest, as for
    files. The traces do not have this share. FaaSFlow's own functions only sleep; a cluster with a
    core for each task would not slow down computing, but the few cores here do.
    ``nodes`` is the number of nodes: see `variants.plans_of`.
    """

    time: Share = 0.01
    size: Share = 0.01
    computing: Annotated[float, Field(ge=0, le=1)] = 0.2
    nodes: Annotated[int, Field(ge=1)] = 1


def write_folder(facts: Facts, scaling: Scaling, folder: Path) -> WorkflowFolder:
    """Write the workflow of `facts` to `folder`, as a user would write it.

    All successors of a task get its whole output; only the first tasks get the request.
    """
    code = _HANDLER.read_text(encoding="utf-8")
    write_stack(
        folder,
        {
            name: {"handler.py": code, "task.json": json.dumps(_scaled(each, scaling))}
            for name, each in facts.tasks.items()
        },
    )
    edges = [[before, name] for name, each in facts.tasks.items() for before in each.after]
    workflow = {"name": facts.name, "tasks": {name: name for name in facts.tasks}, "edges": edges}
    write_atomically(folder / "workflow.json", json.dumps(workflow, indent=1) + "\n")
    request = "r" * _bytes(facts.request_bytes, scaling)
    write_atomically(folder / PAYLOAD_FILE, json.dumps(request) + "\n")
    return WorkflowFolder.open(folder)


def _scaled(facts: TaskFacts, scaling: Scaling) -> dict[str, float]:
    """Return the content of task.json."""
    run_ms = facts.run_s * 1000 * scaling.time
    return {
        "wait_ms": round(run_ms * (1 - scaling.computing), 3),
        "rounds": round(run_ms * scaling.computing * ROUNDS_PER_MS),
        "bytes": _bytes(facts.output_bytes, scaling),
    }


def _bytes(size: int, scaling: Scaling) -> int:
    return max(1, round(size * scaling.size))

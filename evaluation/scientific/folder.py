"""Makes a workflow folder of facts: every task a function of its own, scaled to fit a machine."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

from pydantic import Field

from chiron.evaluation.runtime.deployed import write_stack
from chiron.evaluation.scientific.facts import Facts, TaskFacts
from chiron.workflow.documents import Document, write_atomically
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.payloads import PAYLOAD_FILE

#: The code of every task; it is no module here, since it reads what is beside it there.
_HANDLER = Path(__file__).with_name("task.py")
#: Rounds of the tasks' loop that a core of the machine of the stored runs does in a millisecond.
ROUNDS_PER_MS = 12_000

Share = Annotated[float, Field(gt=0, le=1)]


class Scaling(Document):
    """What is left of the facts: of run times and of sizes.

    ``computing`` is how much of its run time a task computes; in the rest it waits, as for files.
    The traces do not say. FaaSFlow's own functions only sleep; a cluster in which each task has a
    core does not slow down computing either, which the few cores here do. ``nodes`` is how many
    there are to be: see `variants.plans_of`.
    """

    time: Share = 0.01
    size: Share = 0.01
    computing: Annotated[float, Field(ge=0, le=1)] = 0.2
    nodes: Annotated[int, Field(ge=1)] = 1


def write_folder(facts: Facts, scaling: Scaling, folder: Path) -> WorkflowFolder:
    """The workflow of `facts` in `folder`, as a user would have written it.

    A task's output goes whole to all that need it, and the request to the first tasks alone.
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
    """What the task's code reads."""
    run_ms = facts.run_s * 1000 * scaling.time
    return {
        "wait_ms": round(run_ms * (1 - scaling.computing), 3),
        "rounds": round(run_ms * scaling.computing * ROUNDS_PER_MS),
        "bytes": _bytes(facts.output_bytes, scaling),
    }


def _bytes(size: int, scaling: Scaling) -> int:
    return max(1, round(size * scaling.size))

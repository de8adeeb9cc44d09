"""What is known of a workflow that somebody traced: who waits for whom, run times and sizes."""

from __future__ import annotations

from pathlib import Path

from chiron.workflow.documents import Document, read_document

_FOLDER = Path(__file__).parent.parent / "data" / "workflows"
#: The scientific workflows of FaaSFlow's evaluation.
NAMES = ("cycles", "epigenomics", "genome", "soykb")


class TaskFacts(Document):
    """One task: how long it ran alone, what it gave, and whose outputs it got."""

    run_s: float
    output_bytes: int
    after: tuple[str, ...]


class Facts(Document):
    """A traced workflow; each of its first tasks got ``request_bytes`` with the request."""

    name: str
    source: str
    request_bytes: int
    tasks: dict[str, TaskFacts]


def facts_of(name: str) -> Facts:
    """The facts of the workflow `name`, one of `NAMES`."""
    return read_document(Facts, _FOLDER / f"{name}.json", "facts of a workflow")

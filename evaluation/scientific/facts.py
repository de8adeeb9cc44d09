"""Facts of traced workflows: dependencies, run times and sizes."""

from __future__ import annotations

from pathlib import Path

from chiron.workflow.documents import Document, read_document

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

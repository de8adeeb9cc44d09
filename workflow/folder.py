"""A workflow folder: workflow.json, stack.yaml, functions/ and payload.json in one place."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from workflow.asl import parse_states
from workflow.dag import parse_dag
from workflow.documents import read_json
from workflow.errors import ChironError
from workflow.model import Workflow
from workflow.names import NAME

WORKFLOW_FILE = "workflow.json"
#: Largest workflow.json, in bytes: thousands of states.
WORKFLOW_LIMIT = 4 * 1024 * 1024


@dataclass(frozen=True)
class WorkflowFolder:
    """What a user writes; only the workflow itself is read when the folder is opened."""

    path: Path
    workflow: Workflow

    @classmethod
    def open(cls, path: Path) -> WorkflowFolder:
        """The folder at `path`; ``missing-file`` where it has no workflow.json."""
        if not path.is_dir():
            raise ChironError("missing-file", f"workflow folder {path} is not there")
        document = read_json(path / WORKFLOW_FILE, "workflow", WORKFLOW_LIMIT)
        return cls(path, parse_workflow(document, default_name(path)))

    @property
    def stack_file(self) -> Path:
        """Where the ordinary OpenFaaS stack.yaml of the functions is."""
        return self.path / "stack.yaml"

    def payload(self) -> bytes:
        """The example request: the content of payload.json, ``{}`` where there is none."""
        file = self.path / "payload.json"
        return file.read_bytes() if file.exists() else b"{}"


def parse_workflow(document: Any, name: str = "workflow") -> Workflow:
    """The workflow in a parsed workflow.json of either form; `name` where it names none."""
    if isinstance(document, dict) and "States" in document:
        return parse_states(document, name)
    if isinstance(document, dict) and "tasks" in document:
        return parse_dag(document, name)
    raise ChironError(
        "bad-document",
        'a workflow is an object with "StartAt" and "States" (Amazon States Language) '
        'or with "tasks" and "edges"',
    )


def default_name(path: Path) -> str:
    """The name that the folder gives to a workflow without one."""
    name = path.resolve().name.lower()
    return name if NAME.fullmatch(name) else "workflow"

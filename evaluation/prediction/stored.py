"""Measured plans on disk: rows as JSON lines beside all that is needed to predict them again.

A folder of rows has ``platform.json`` and, for every workflow, ``NAME.workflow.json``,
``NAME.profile.json`` and ``NAME.rows.jsonl`` with plans of both mechanisms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from evaluation.prediction.measured import PredictedRow
from workflow.documents import (
    dump,
    parse_json,
    read_document,
    read_json,
    validate,
    write_atomically,
)
from workflow.errors import ChironError
from workflow.folder import WORKFLOW_FILE, WorkflowFolder, parse_workflow
from workflow.model import Workflow
from workflow.platform import Platform
from workflow.profile import Profile

_ROWS = ".rows.jsonl"


@dataclass(frozen=True)
class StoredWorkflow:
    """One workflow with at least one measured plan."""

    name: str
    workflow: Workflow
    profile: Profile
    rows: tuple[PredictedRow, ...]


def begin(path: Path, platform: Platform) -> None:
    """Make the folder of rows at `path`, without the rows of an earlier run."""
    for earlier in path.glob("*" + _ROWS):
        earlier.unlink()
    write_atomically(path / "platform.json", dump(platform))


def add_workflow(path: Path, folder: WorkflowFolder, profile: Profile) -> None:
    """Store what the rows of a workflow need, before its first row."""
    name = folder.workflow.name
    text = (folder.path / WORKFLOW_FILE).read_text(encoding="utf-8")
    write_atomically(path / f"{name}.workflow.json", text)
    write_atomically(path / f"{name}.profile.json", dump(profile))


def add_row(path: Path, name: str, row: PredictedRow) -> None:
    """Store one row of the workflow `name` at once: what is measured outlives an interruption."""
    with (path / f"{name}{_ROWS}").open("a", encoding="utf-8") as file:
        file.write(row.model_dump_json() + "\n")


def read_rows(path: Path) -> tuple[Platform, list[StoredWorkflow]]:
    """The platform and all workflows of the folder at `path`, in the order of their names.

    Raises
    ------
    ChironError
        ``missing-file`` where it is no such folder, ``bad-json`` or ``bad-document`` with file,
        line and path, and what plans of other tasks or functions without profile raise.
    """
    platform = read_document(Platform, path / "platform.json", "platform")
    files = sorted(path.glob("*" + _ROWS))
    if not files:
        raise ChironError("missing-file", f"{path} has no NAME{_ROWS}: name a folder of rows")
    return platform, [_read(path, file) for file in files]


def _read(path: Path, file: Path) -> StoredWorkflow:
    name = file.name.removesuffix(_ROWS)
    workflow = parse_workflow(read_json(path / f"{name}.workflow.json", "workflow"), name)
    profile = read_document(Profile, path / f"{name}.profile.json", "profile")
    profile.require(workflow.functions)
    rows = tuple(_rows(file))
    if not rows:
        raise ChironError("missing-file", f"{file} has no row: measure again")
    for row in rows:
        row.plan.check_against(workflow)
    return StoredWorkflow(name, workflow, profile, rows)


def _rows(file: Path) -> Iterator[PredictedRow]:
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), start=1):
        what = f"line {number} of {file}"
        yield validate(PredictedRow, parse_json(line, what), what)

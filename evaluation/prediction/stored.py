"""Measured plans on disk: rows as JSON lines beside all that is needed to predict them.

A folder of rows has ``platform.json`` and, for every workflow, ``NAME.workflow.json``,
``NAME.profile.json`` and ``NAME.rows.jsonl`` with plans of both mechanisms. ``run.json`` says how
they were measured, so that a stopped run goes on as it began.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from evaluation.bench.journal import Journal
from evaluation.bench.setup import PLATFORM_FILE, kept
from evaluation.prediction.measured import MeasuredRow
from workflow.documents import Document, read_document, read_json, write_atomically
from workflow.errors import ChironError
from workflow.folder import WORKFLOW_FILE, WorkflowFolder, parse_workflow
from workflow.model import Workflow
from workflow.platform import Platform
from workflow.profile import Profile

_ROWS = ".rows.jsonl"


class RowSettings(Document):
    """How the rows of a folder are measured: requests for each plan, and which plans are drawn."""

    samples: int
    seed: int


@dataclass(frozen=True)
class StoredWorkflow:
    """One workflow with at least one measured plan."""

    name: str
    workflow: Workflow
    profile: Profile
    rows: tuple[MeasuredRow, ...]


def profile_file(path: Path, workflow: str) -> Path:
    """Where the profile of a workflow is kept."""
    return path / f"{workflow}.profile.json"


def keep_workflow(
    path: Path, folder: WorkflowFolder, measure: Callable[[], Profile]
) -> tuple[Profile, Journal[MeasuredRow]]:
    """What the rows of a workflow need, and where they go; profiled by `measure` only once.

    Raises
    ------
    ChironError
        ``other-run`` where the folder has rows of another workflow of that name.
    """
    name = folder.workflow.name
    file = path / f"{name}.workflow.json"
    text = (folder.path / WORKFLOW_FILE).read_text(encoding="utf-8")
    if file.exists() and file.read_text(encoding="utf-8") != text:
        message = f"{path} has rows of another {name}: name another folder with -o, or remove it"
        raise ChironError("other-run", message)
    write_atomically(file, text)
    profile = kept(profile_file(path, name), Profile, measure)
    return profile, Journal(path / f"{name}{_ROWS}", MeasuredRow)


def read_rows(path: Path) -> tuple[Platform, list[StoredWorkflow]]:
    """The platform and all workflows of the folder at `path`, in the order of their names.

    Raises
    ------
    ChironError
        ``missing-file`` where it is no such folder, ``bad-json`` or ``bad-document`` with file,
        line and path, and what plans of other tasks or functions without profile raise.
    """
    platform = read_document(Platform, path / PLATFORM_FILE, "platform")
    files = sorted(path.glob("*" + _ROWS))
    if not files:
        raise ChironError("missing-file", f"{path} has no NAME{_ROWS}: name a folder of rows")
    return platform, [_read(path, file) for file in files]


def _read(path: Path, file: Path) -> StoredWorkflow:
    name = file.name.removesuffix(_ROWS)
    workflow = parse_workflow(read_json(path / f"{name}.workflow.json", "workflow"), name)
    profile = read_document(Profile, profile_file(path, name), "profile")
    profile.require(workflow.functions)
    rows = tuple(Journal(file, MeasuredRow).rows())
    if not rows:
        raise ChironError("missing-file", f"{file} has no row: measure again")
    for row in rows:
        row.plan.check_against(workflow)
    return StoredWorkflow(name, workflow, profile, rows)

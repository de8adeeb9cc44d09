"""The workflow of an artefact: another workflow's artefact is refused, and never overwritten."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from chiron.workflow.documents import read_json, writing
from chiron.workflow.errors import ChironError
from chiron.workflow.model import Workflow
from chiron.workflow.names import NAME, shown
from chiron.workflow.profile import Profile


def require_own(profile: Profile, workflow: Workflow, what: str) -> None:
    """Raise ``another-workflow`` unless `profile`, called `what`, is of the current `workflow`.

    Raises ``unknown-function`` if it lacks one of the workflow's functions.
    """
    mend = "run chiron profile on the workflow's folder, or name its own with --profile"
    if profile.workflow != workflow.name:
        message = f"{what} is of workflow {profile.workflow}, not of {workflow.name}: {mend}"
        raise ChironError("another-workflow", message, path="workflow")
    profile.require(workflow.functions)
    for payload in profile.payloads:
        for each in payload.trace:
            if each.task is not None and each.task not in workflow.by_name:
                task = shown(each.task)
                message = f"{what} is of an older {workflow.name}, which had task {task}: {mend}"
                raise ChironError("another-workflow", message, path="payloads")


def workflow_in(file: Path) -> str | None:
    """Return the workflow of the artefact in `file`; None if it names none."""
    with suppress(ChironError):
        document = read_json(file, "artefact")
        name = document.get("workflow") if isinstance(document, dict) else None
        if isinstance(name, str) and NAME.fullmatch(name):
            return name
    return None


def set_aside(file: Path, workflow: str) -> Path | None:
    """Rename `file` if it is another workflow's artefact; return the new path, or None."""
    other = workflow_in(file) if file.is_file() else None
    if other is None or other == workflow:
        return None
    aside = file.with_stem(f"{file.stem}-{other}")
    with writing(file):
        return file.replace(aside)

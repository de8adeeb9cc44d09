"""Reads artefacts of earlier verbs; an error about a missing artefact names its verb."""

from __future__ import annotations

import shlex
from contextlib import suppress
from pathlib import Path

from chiron.cli.output import emit, progress, warn
from chiron.workflow.belonging import require_own, set_aside, workflow_in
from chiron.workflow.documents import Model, read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile

#: The files that verbs look for and write where no option names another one.
PROFILE_FILE, PLATFORM_FILE = "profile.json", "platform.json"
#: The folder in which `chiron deploy` keeps them where no option names another one.
OUT = Path("out")


def read_profile(path: Path, folder: Path | None = None) -> Profile:
    """Read the profile in `path`; with `folder`, check that it belongs to that workflow."""
    named = "DIR" if folder is None else shlex.quote(str(folder))
    return _read(Profile, path, "profile", f"chiron profile {named}")


def read_platform(path: Path) -> Platform:
    return _read(Platform, path, "platform", "chiron calibrate")


def measured(
    folder: WorkflowFolder, profile: Path | None, platform: Path | None
) -> tuple[Profile, Platform]:
    """Read profile and platform: from the options, else from `folder`, ``.`` or `OUT`.

    Warns of a profile of other code.

    Raises ``another-workflow`` if the profile belongs to another workflow than `folder`.
    """
    file = profile or profile_file(folder)
    found = own_profile(file, folder)
    there = (each / PLATFORM_FILE for each in (folder.path, Path(), OUT))
    return found, read_platform(platform or next(filter(Path.exists, there), Path(PLATFORM_FILE)))


def own_profile(file: Path, folder: WorkflowFolder) -> Profile:
    """Read the profile in `file`; warn if the code or payloads in `folder` have changed since.

    Raises ``another-workflow`` if it belongs to another workflow than `folder`.
    """
    from chiron.profiler.holding import profiled_source  # which imports much

    found = read_profile(file, folder.path)
    require_own(found, folder.workflow, str(file))
    with suppress(ChironError):  # a folder without functions can be planned
        if found.source and found.source != profiled_source(folder):
            again = shlex.join(["chiron", "profile", str(folder.path)])
            warn([f"{file} is of other code or payloads: run {again}"])
    return found


def profile_file(folder: WorkflowFolder) -> Path:
    """Return the first profile of the workflow in `folder` among the usual places.

    Without any, return the first existing profile, else the file that would be written.
    """
    there = [each for each in profile_files(folder) if each.exists()]
    own = (each for each in there if workflow_in(each) == folder.workflow.name)
    return next(own, there[0] if there else Path(PROFILE_FILE))


def profile_files(folder: WorkflowFolder, out: Path = OUT) -> tuple[Path, ...]:
    """Return the places for a profile of the workflow in `folder`, the preferred one first."""
    aside = Path(PROFILE_FILE).with_stem(f"profile-{folder.workflow.name}")
    return folder.path / PROFILE_FILE, Path(PROFILE_FILE), aside, out / PROFILE_FILE


def emit_own(document: Profile | Plan, path: Path, as_json: bool) -> None:
    """Write an artefact; rename a file of the same name that belongs to another workflow."""
    if aside := set_aside(path, document.workflow):
        progress(f"{path} is of another workflow: it is {aside} now")
    emit(document, path, as_json)


def read_plan(path: Path) -> Plan:
    return _read(Plan, path, "plan", "chiron schedule DIR --slo 200ms")


def _read(model: type[Model], path: Path, what: str, verb: str) -> Model:
    if path.is_dir():
        message = f"{path} is a folder: name the file of the {what}, such as {path / what}.json"
        raise ChironError("missing-file", message)
    try:
        return read_document(model, path, what)
    except ChironError as error:
        if error.code != "missing-file":
            raise
        message = f"{error.message}: make it with {verb} -o {shlex.quote(str(path))}"
        raise error.changed(error.path, message) from None

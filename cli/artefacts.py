"""Reads the artefacts of earlier steps; where one is missing, the error names its verb."""

from __future__ import annotations

import shlex
from pathlib import Path

from chiron.workflow.documents import Model, read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.plan import Plan
from chiron.workflow.platform import Platform
from chiron.workflow.profile import Profile


def read_profile(path: Path, folder: Path | None = None) -> Profile:
    """The profile in `path`, of the workflow in `folder` where that is known."""
    named = "DIR" if folder is None else shlex.quote(str(folder))
    return _read(Profile, path, "profile", f"chiron profile {named}")


def read_platform(path: Path) -> Platform:
    """The platform in `path`."""
    return _read(Platform, path, "platform", "chiron calibrate")


def measured(folder: Path, profile: Path | None, platform: Path | None) -> tuple[Profile, Platform]:
    """Profile and platform; those that no option names are in `folder`, else in the current one."""
    return (
        read_profile(profile or _default(folder, "profile.json"), folder),
        read_platform(platform or _default(folder, "platform.json")),
    )


def _default(folder: Path, name: str) -> Path:
    return folder / name if (folder / name).exists() else Path(name)


def read_plan(path: Path) -> Plan:
    """The plan in `path`."""
    return _read(Plan, path, "plan", "chiron schedule DIR --slo 200ms")


def _read(model: type[Model], path: Path, what: str, verb: str) -> Model:
    try:
        return read_document(model, path, what)
    except ChironError as error:
        if error.code != "missing-file":
            raise
        message = f"{error.message}: make it with {verb} -o {shlex.quote(str(path))}"
        raise ChironError(error.code, message) from None

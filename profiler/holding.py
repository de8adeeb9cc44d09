"""Decide whether an earlier profile is still valid: same functions, payloads and place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from chiron.deployment.background_load import disturbance, is_quiet
from chiron.deployment.deploy import Progress
from chiron.generator.fingerprint import digest, source_of
from chiron.generator.generate import Sources
from chiron.workflow.documents import read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import Profile


def profiled_source(folder: WorkflowFolder) -> str:
    """Return a short digest of the parts of `folder` that a profile depends on."""
    payloads = (f"{each.name} {each.weight} {each.content.hex()}" for each in folder.payloads())
    return digest([source_of(Sources.read(folder)), *payloads])


def holding_profile(
    files: Iterable[Path], folder: WorkflowFolder, place: str, progress: Progress
) -> Profile | None:
    """Return the first valid profile in `files` for the workflow in `folder` at `place`, or None.

    `progress` is called with the chosen profile, or with the reasons why profiles are invalid.
    """
    source = profiled_source(folder)
    for file, profile in _profiles(files, folder.workflow.name):
        reason = outdated(profile, source, place, quiet=is_quiet)
        if reason is None:
            progress(f"using {file}: functions, payloads and place are as when it was taken")
            return profile
        progress(f"profiling again: {file} {reason}")
    return None


def outdated(profile: Profile, source: str, place: str, quiet: Callable[[], bool]) -> str | None:
    """Return why `profile` is invalid for the code and payloads `source` at `place`; None if valid.

    A profile taken on a busy machine is replaced once the machine is `quiet`: on a busy machine a
    new profile would be no better.
    """
    if not profile.source:
        return "does not say of which code it is"
    if profile.source != source:
        return "is of other code or payloads"
    if profile.place != place:
        return f"was taken at {profile.place}, not at {place}"
    if disturbance(profile.others) and quiet():
        return "was taken on a busy machine, which is quiet now"
    return None


def _profiles(files: Iterable[Path], workflow: str) -> Iterator[tuple[Path, Profile]]:
    for file in dict.fromkeys(files):
        try:
            profile = read_document(Profile, file, "profile")
        except ChironError:
            continue  # no such file, or a foreign file of that name
        if profile.workflow == workflow:
            yield file, profile

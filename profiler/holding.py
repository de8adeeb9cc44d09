"""Whether an earlier profile still holds: the same functions, payloads and place."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from chiron.deployment.background_load import disturbance, is_quiet
from chiron.generator.fingerprint import digest, source_of
from chiron.generator.generate import Sources
from chiron.workflow.documents import read_document
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import Profile

Progress = Callable[[str], None]


def profiled_source(folder: WorkflowFolder) -> str:
    """A short name for all of `folder` that a profile depends on: functions and payloads."""
    payloads = (f"{each.name} {each.weight} {each.content.hex()}" for each in folder.payloads())
    return digest([source_of(Sources.read(folder)), *payloads])


def holding_profile(
    files: Iterable[Path], folder: WorkflowFolder, place: str, progress: Progress
) -> Profile | None:
    """The first profile in `files` that holds for the workflow in `folder` at `place`, or None.

    `progress` is told which profile that is, or why those of this workflow do not hold.
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
    """Why `profile` does not hold for functions and payloads named `source` at `place`.

    A profile that was taken on a busy machine is replaced when the machine is `quiet`: another one
    would be no better while the machine is busy. None where it holds.
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
            continue  # there is none, or somebody else's file of that name
        if profile.workflow == workflow:
            yield file, profile

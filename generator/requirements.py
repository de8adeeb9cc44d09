"""One requirements.txt for the functions of a wrap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from workflow.documents import read_file
from workflow.errors import ChironError

#: Largest requirements.txt, in bytes.
_FILE_LIMIT = 1024 * 1024


def merge_requirements(folders: Mapping[str, Path]) -> list[str]:
    """All requirements of the functions in `folders` (name -> handler folder), each once, sorted.

    Raises
    ------
    ChironError
        ``bad-requirement`` where a line is no requirement; ``requirements-conflict`` where one
        function pins a version that another does not allow: they cannot share a wrap.
    """
    needs = [
        (function, requirement)
        for function, folder in sorted(folders.items())
        for requirement in read_requirements(function, folder)
    ]
    for function, requirement in needs:
        for pin in _pins(requirement):
            _check_pin(function, requirement, pin, needs)
    return sorted({str(requirement) for _, requirement in needs})


def _pins(requirement: Requirement) -> list[str]:
    """The version that `requirement` pins, if it does so where it applies here."""
    if requirement.marker and not requirement.marker.evaluate():
        return []
    exact = [s.version for s in requirement.specifier if s.operator == "=="]
    return [version for version in exact if not version.endswith(".*")]


def _check_pin(
    function: str, pinned: Requirement, version: str, needs: list[tuple[str, Requirement]]
) -> None:
    for other, requirement in needs:
        applies = requirement.marker is None or requirement.marker.evaluate()
        if (
            applies
            and requirement.name == pinned.name
            and not requirement.specifier.contains(version, prereleases=True)
        ):
            raise ChironError(
                "requirements-conflict",
                f"{function} needs {pinned.name}=={version} and {other} needs "
                f"{requirement.name}{requirement.specifier}: pin one version, or keep them in "
                "different wraps",
                functions=(function, other),
            )


def read_requirements(function: str, folder: Path) -> list[Requirement]:
    """The requirements in `folder`'s requirements.txt, none where there is no such file."""
    file = folder / "requirements.txt"
    lines = _lines(function, file) if file.exists() else []
    stripped = (line.partition(" #")[0].strip() for line in lines)
    return [_parsed(line, function, file) for line in stripped if line and line[0] != "#"]


def _lines(function: str, file: Path) -> list[str]:
    content = read_file(file, f"function {function}: {file}", _FILE_LIMIT)
    try:
        return content.decode().splitlines()
    except UnicodeDecodeError:
        raise ChironError(
            "bad-requirement", f"function {function}: {file} is not UTF-8", functions=[function]
        ) from None


def _parsed(line: str, function: str, file: Path) -> Requirement:
    try:
        requirement = Requirement(line)
    except InvalidRequirement:
        raise ChironError(
            "bad-requirement",
            f"function {function}: {line[:60]!a} in {file} is no plain requirement (name==1.0)",
            functions=[function],
        ) from None
    requirement.name = canonicalize_name(requirement.name)
    return requirement

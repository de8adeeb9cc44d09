"""One requirements.txt for the functions of a wrap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from workflow.errors import ChironError


def merge_requirements(folders: Mapping[str, Path]) -> list[str]:
    """All requirements of the functions in `folders` (name -> handler folder), each once, sorted.

    Raises
    ------
    ChironError
        ``bad-requirement`` where a line is no requirement; ``requirements-conflict`` where two
        functions pin different versions of a package: they cannot share a wrap.
    """
    merged: dict[str, str] = {}
    pins: dict[str, tuple[str, str]] = {}
    for function, folder in sorted(folders.items()):
        for requirement in read_requirements(function, folder):
            merged[str(requirement)] = function
            pin = next((s.version for s in requirement.specifier if s.operator == "=="), None)
            if pin is None:
                continue
            package = canonicalize_name(requirement.name)
            other, version = pins.setdefault(package, (function, pin))
            if version != pin:
                raise ChironError(
                    "requirements-conflict",
                    f"{other} needs {package}=={version} and {function} needs {package}=={pin}: "
                    "pin one version, or keep them in different wraps",
                    functions=(other, function),
                )
    return sorted(merged)


def read_requirements(function: str, folder: Path) -> list[Requirement]:
    """The requirements in `folder`'s requirements.txt, none where there is no such file."""
    file = folder / "requirements.txt"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    stripped = (line.partition(" #")[0].strip() for line in lines)
    return [_parsed(line, function, file) for line in stripped if line and line[0] != "#"]


def _parsed(line: str, function: str, file: Path) -> Requirement:
    try:
        return Requirement(line)
    except InvalidRequirement:
        raise ChironError(
            "bad-requirement",
            f"function {function}: {line[:60]!a} in {file} is no plain requirement (name==1.0)",
            functions=[function],
        ) from None

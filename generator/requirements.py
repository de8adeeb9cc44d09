"""One requirements.txt for the functions of a wrap."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from packaging.requirements import Requirement

from openfaas.requirements import read_requirements
from workflow.errors import ChironError


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

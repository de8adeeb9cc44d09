"""A function's requirements: the union of its files, and whether this interpreter has them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from gateway.errors import GatewayError
from gateway.requirement_lines import LIMIT, parse


def union(function: str, *files: Path) -> tuple[str, ...]:
    """The normalised, sorted requirements of those `files` that exist, each once."""
    lines = {str(each) for path in files if path.is_file() for each in _read(function, path)}
    return tuple(sorted(lines))


def _read(function: str, path: Path) -> list[Requirement]:
    with path.open("rb") as file:
        content = file.read(LIMIT + 1)
    try:
        return parse(content)
    except ValueError as error:
        raise GatewayError("bad-requirement", f"function {function}: {path} {error}") from None


def satisfied(lines: tuple[str, ...]) -> bool:
    """Whether the running interpreter already has every requirement in `lines`.

    A direct URL says where a package must come from, which an installed package does not tell,
    so it counts as not satisfied.
    """
    return all(_has(Requirement(line)) for line in lines)


def _has(requirement: Requirement) -> bool:
    if requirement.marker and not requirement.marker.evaluate():
        return True
    if requirement.url:
        return False
    try:
        installed = metadata.distribution(requirement.name)
    except metadata.PackageNotFoundError:
        return False
    if not requirement.specifier.contains(installed.version, prereleases=True):
        return False
    return all(_has_extra(installed, extra) for extra in requirement.extras)


def _has_extra(installed: metadata.Distribution, extra: str) -> bool:
    for line in installed.requires or []:
        requirement = Requirement(line)
        marker = requirement.marker
        if marker and marker.evaluate({"extra": extra}) and not marker.evaluate({"extra": ""}):
            requirement.marker = None
            if not _has(requirement):
                return False
    return True

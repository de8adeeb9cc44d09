"""A function's requirements: the union of its files, and whether this interpreter has them."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path

from packaging.requirements import InvalidRequirement, Requirement
from packaging.utils import canonicalize_name

from gateway.errors import GatewayError

# They point into the handler's folder, which the image's venv must not depend on.
_REFUSED = ("-r", "--requirement", "-c", "--constraint", "-e", "--editable")


def union(function: str, *files: Path) -> tuple[str, ...]:
    """The normalised, sorted lines of those `files` that exist, each requirement once."""
    lines = {line for path in files if path.is_file() for line in _lines(function, path)}
    return tuple(sorted(lines))


def _lines(function: str, path: Path) -> list[str]:
    text = path.read_text(encoding="utf-8").replace("\\\n", " ")
    stripped = (line.split(" #")[0].strip() for line in text.splitlines())
    return [
        _normalised(function, path, line) for line in stripped if line and not line.startswith("#")
    ]


def _normalised(function: str, path: Path, line: str) -> str:
    if line.split("=")[0].split()[0] in _REFUSED:
        raise GatewayError(
            "bad-requirement",
            f"function {function}: {path}: {line!r} is not supported: list the packages themselves",
        )
    if line.startswith("-"):
        return line
    try:
        requirement = Requirement(line)
    except InvalidRequirement as error:
        reason = str(error).splitlines()[0]
        raise GatewayError(
            "bad-requirement", f"function {function}: {path}: {line!r} is no requirement: {reason}"
        ) from error
    requirement.name = canonicalize_name(requirement.name)
    return str(requirement)


def satisfied(lines: tuple[str, ...]) -> bool:
    """Whether the running interpreter already has every requirement in `lines`.

    pip's own options and direct URLs say where a package must come from, which an installed
    package does not tell, so they count as not satisfied.
    """
    return all(not line.startswith("-") and _has(Requirement(line)) for line in lines)


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

"""A function's requirements: the union of its files, and an interpreter that satisfies them."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import shutil
import subprocess
import sys
from collections.abc import Callable
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

from chiron.gateway.images import exclusive_lock
from chiron.openfaas.handler_folder import LIMIT, parse
from chiron.workflow.errors import ChironError

_PIP_LINES_SHOWN = 3
#: The line of pip with the versions for other Pythons.
_NOISE = re.compile(r"Ignored the following")
#: The list of versions in pip's error, of which the last three are shown.
_VERSIONS = re.compile(r"\(from versions: .*, ([^,]+, [^,]+, [^,]+)\)")


def union(function: str, *files: Path) -> tuple[str, ...]:
    """Return the normalised, sorted requirements of those `files` that exist, each once."""
    lines = {str(each) for path in files if path.is_file() for each in _read(function, path)}
    return tuple(sorted(lines))


def _read(function: str, path: Path) -> list[Requirement]:
    with path.open("rb") as file:
        content = file.read(LIMIT + 1)
    try:
        return parse(content)
    except ValueError as error:
        raise ChironError("bad-requirement", f"function {function}: {path} {error}") from None


def satisfied(lines: tuple[str, ...]) -> bool:
    """Return whether the running interpreter already has every requirement in `lines`.

    A direct URL is the required origin of a package. An installed package does not record its
    origin, so a direct URL counts as not satisfied.
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


def interpreter(
    function: str, lines: tuple[str, ...], cache: Path, say: Callable[[str], None]
) -> Path:
    """Return the python that satisfies `lines`; installs them into `cache` if need be.

    pip reuses its own cache of downloads.

    Args:
        function: the function with the requirements, for the error.
        lines: normalised requirements as from `requirements.union`.
        cache: folder of venvs; one venv per distinct requirements and Python version.
        say: called before an installation, which can take minutes.

    Raises ChironError with pip's last lines if pip could not install them.
    """
    if satisfied(lines):
        return Path(sys.executable)
    cache.mkdir(parents=True, exist_ok=True)
    key = hashlib.sha256("\n".join((sys.version, *lines)).encode()).hexdigest()
    venv = cache / key[:24]
    with exclusive_lock(venv.with_suffix(".lock")):
        # The mark is written last: a venv without it was interrupted.
        complete = venv / "complete"
        if not complete.exists():
            shutil.rmtree(venv, ignore_errors=True)
            say(f"{function}: installing {', '.join(lines)} into {venv}, once")
            _create(function, lines, venv)
            complete.touch()
    return venv / "bin" / "python"


def _create(function: str, lines: tuple[str, ...], venv: Path) -> None:
    """Make a venv with `lines`, by our own pip: installing another pip takes seconds."""
    python = str(venv / "bin" / "python")
    make = [sys.executable, "-m", "venv"]
    pip = [sys.executable, "-m", "pip", "--python", python]
    if importlib.util.find_spec("pip") is None:
        _run_pip(function, [*make, str(venv)])
        pip = [python, "-m", "pip"]
    else:
        _run_pip(function, [*make, "--without-pip", str(venv)])
    listing = venv / "requirements.txt"
    listing.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pip.append("--disable-pip-version-check")
    try:
        _run_pip(function, [*pip, "--no-input", "install", "--quiet", "-r", str(listing)])
    except ChironError:
        shutil.rmtree(venv, ignore_errors=True)
        raise


def _run_pip(function: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stdout + done.stderr).splitlines()]
        said = [_VERSIONS.sub(r"(from versions: ..., \1)", line) for line in lines]
        told = [line for line in said if line and not _NOISE.search(line)]
        raise ChironError(
            "requirements-failed",
            f"function {function}: its requirements cannot be installed: mend its "
            f"requirements.txt; pip says: {' | '.join(told[-_PIP_LINES_SHOWN:])}",
        )

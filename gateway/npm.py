"""Installs the dependencies in the package.json of Node.js functions, beside each handler."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from chiron.workflow.errors import ChironError

_LINES_SHOWN = 3


def install(function: str, folder: Path, say: Callable[[str], None]) -> None:
    """Install the dependencies of the functions of the wrap `function`, which is in `folder`.

    npm reuses its own cache of downloads.

    Raises ChironError: a package.json is invalid, npm is missing, or the installation failed; with
    npm's last lines.
    """
    for file in sorted(folder.glob("functions/*/function/package.json")):
        if _has_dependencies(function, file):
            say(f"{function}: installing what {file.parent.parent.name} has in its package.json")
            _run_npm(function, file.parent)


def _has_dependencies(function: str, file: Path) -> bool:
    try:
        return bool(json.loads(file.read_text(encoding="utf-8")).get("dependencies"))
    except (ValueError, AttributeError) as error:
        said = f"package.json of {file.parent.parent.name} is none: {error}"
        raise ChironError("npm-failed", f"function {function}: {said}") from None


def _run_npm(function: str, folder: Path) -> None:
    """Run npm as OpenFaaS's template does, which leaves out packages of the handler folder."""
    npm = shutil.which("npm")
    if npm is None:
        said = "its package.json needs npm, which is not installed here: install Node.js 20"
        raise ChironError("npm-failed", f"function {function}: {said}")
    shutil.rmtree(folder / "node_modules", ignore_errors=True)
    command = [npm, "install", "--omit=dev", "--no-audit", "--no-fund", "--loglevel=error"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line.strip() for line in (done.stderr + done.stdout).splitlines()]
        told = " | ".join([line for line in lines if line][:_LINES_SHOWN])
        raise ChironError(
            "npm-failed",
            f"function {function}: the dependencies of {folder.parent.name} cannot be installed: "
            f"mend its package.json; npm says: {told}",
        )

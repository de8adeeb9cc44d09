"""The interpreter for a set of requirements: this one if it has them, else a cached venv."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

from gateway import locks, requirements
from gateway.errors import GatewayError

_PIP_LINES_SHOWN = 3


def interpreter(function: str, lines: tuple[str, ...], cache: Path) -> Path:
    """The python that satisfies `lines`, installing them into `cache` if it must.

    Args:
        function: whose requirements they are, for the error.
        lines: normalised requirements as `requirements.union` gives them.
        cache: folder of venvs; one venv per distinct requirements and Python version.

    Raises:
        GatewayError: pip could not install them; carries pip's last lines.
    """
    if requirements.satisfied(lines):
        return Path(sys.executable)
    cache.mkdir(parents=True, exist_ok=True)
    venv = cache / _key(lines)
    with locks.exclusive(venv.with_suffix(".lock")):
        # The mark is written last, so a venv without it is one whose build was cut short.
        complete = venv / "complete"
        if not complete.exists():
            shutil.rmtree(venv, ignore_errors=True)
            _create(function, lines, venv)
            complete.touch()
    return venv / "bin" / "python"


def _key(lines: tuple[str, ...]) -> str:
    text = "\n".join((sys.version, *lines))
    return hashlib.sha256(text.encode()).hexdigest()[:24]


def _create(function: str, lines: tuple[str, ...], venv: Path) -> None:
    _run(function, [sys.executable, "-m", "venv", str(venv)])
    listing = venv / "requirements.txt"
    listing.write_text("\n".join(lines) + "\n", encoding="utf-8")
    pip = [str(venv / "bin" / "python"), "-m", "pip", "--disable-pip-version-check"]
    try:
        _run(function, [*pip, "--no-input", "install", "--quiet", "-r", str(listing)])
    except GatewayError:
        shutil.rmtree(venv, ignore_errors=True)
        raise


def _run(function: str, command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        said = [line.strip() for line in (done.stdout + done.stderr).splitlines() if line.strip()]
        raise GatewayError(
            "requirements-failed",
            f"function {function}: its requirements cannot be installed, pip says: "
            + " | ".join(said[-_PIP_LINES_SHOWN:]),
        )

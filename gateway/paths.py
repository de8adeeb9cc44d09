"""Where the gateway keeps what outlives it: built images and the venvs they run on."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """``$CHIRON_HOME``; when it is not set the user's cache folder, for root the system's.

    Functions that root's gateway runs as another user have to get at their images, which they
    could not in root's home. An ordinary user's are that user's alone: they hold code.
    """
    configured = os.environ.get("CHIRON_HOME")
    if configured:
        return Path(configured)
    if os.geteuid() == 0:
        return Path("/var/cache/chiron")
    folder = Path.home() / ".cache" / "chiron"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder.chmod(0o700)
    return folder


def images() -> Path:
    """The default folder of the image store."""
    return home() / "images"


def venvs() -> Path:
    """The folder of the cached virtual environments."""
    return home() / "venvs"

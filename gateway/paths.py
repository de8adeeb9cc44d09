"""Where the gateway keeps what outlives it: built images and the venvs they run on."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """``$CHIRON_HOME``, or the user's cache folder when it is not set."""
    configured = os.environ.get("CHIRON_HOME")
    return Path(configured) if configured else Path.home() / ".cache" / "chiron"


def images() -> Path:
    """The default folder of the image store."""
    return home() / "images"


def venvs() -> Path:
    """The folder of the cached virtual environments."""
    return home() / "venvs"

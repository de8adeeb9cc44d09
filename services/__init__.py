"""The verbs as web services; here is what can be said of them before they are imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

#: The components.
NAMES = ("profiler", "predictor", "scheduler", "generator", "deployments")
HOST = "127.0.0.1"
PORT = 20230


def state_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Where jobs are kept by default, and what watchers tell: a folder of CHIRON_HOME, or else of
    the user's state.

    It is nobody else's, as CHIRON_HOME may have to be.
    """
    home = variables.get("CHIRON_HOME")
    return Path(home) / "services" if home else Path.home() / ".local" / "state" / "chiron"

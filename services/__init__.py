"""The verbs as web services; this module has the constants needed before they are imported."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

NAMES = ("profiler", "predictor", "scheduler", "generator", "deployments")
HOST = "127.0.0.1"
PORT = 20230


def state_folder(variables: Mapping[str, str] = os.environ) -> Path:
    """Return the default folder of jobs and watchers' events, in CHIRON_HOME or the user's state.

    It is a private subfolder, as CHIRON_HOME may have to be readable for others.
    """
    home = variables.get("CHIRON_HOME")
    return Path(home) / "services" if home else Path.home() / ".local" / "state" / "chiron"

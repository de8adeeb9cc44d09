"""What can be said of the components before they are imported: their names and their address."""

from __future__ import annotations

NAMES = ("profiler", "predictor", "scheduler", "generator", "deployments")
HOST = "127.0.0.1"
PORT = 20230

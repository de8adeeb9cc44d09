"""The verbs as web services; here is what can be said of them before they are imported."""

from __future__ import annotations

#: The components.
NAMES = ("profiler", "predictor", "scheduler", "generator", "deployments")
HOST = "127.0.0.1"
PORT = 20230

"""The job that measures a platform: its constants, and how wrong predictions are there."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from generator.launcher import Launcher
from predictor.predict import predict
from profiler.calibrate import calibrate


def run_calibrate(
    _: Mapping[str, Any], launcher: Launcher, progress: Callable[[str], None]
) -> dict[str, Any]:
    """The job that the profiler's ``/calibrate`` queues."""
    return calibrate(launcher, predict=predict, progress=progress).model_dump(mode="json")

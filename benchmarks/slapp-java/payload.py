"""Generates the request of the workflow: slapp's, with other Fibonacci numbers."""

from pathlib import Path
from runpy import run_path
from typing import Any

FIBONACCI = {"test": 12, "small": 32, "large": 35}


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    found: dict[str, Any] = run_path(str(Path(__file__).parents[1] / "slapp" / "payload.py"))
    request: dict[str, Any] = found["payload"](size)
    request["sizes"]["fibonacci"]["n"] = FIBONACCI[size]
    return request

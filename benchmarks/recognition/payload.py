"""Generates the request of the workflow: megabytes of pictures, sheets, and noise."""

from typing import Any

SIZES = {"test": (0.1, 2), "small": (1, 4), "large": (16, 16)}
NOISE = 60  # the most that a cell is lighter or darker, of 255


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    megabytes, parts = SIZES[size]
    return {"megabytes": megabytes, "parts": parts, "noise": NOISE}

"""Generates the request of the workflow: the length of a text, and the number of parts."""

from typing import Any

SIZES = {"test": (0.1, 2), "small": (4, 4), "large": (16, 16)}


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    megabytes, parts = SIZES[size]
    return {"megabytes": megabytes, "parts": parts}

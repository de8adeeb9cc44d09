"""Generates the request of the workflow: megabytes, and numbers of mappers and reducers."""

from typing import Any

SIZES = {"test": (0.1, 2, 2), "small": (8, 4, 4), "large": (64, 8, 8)}


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    megabytes, parts, groups = SIZES[size]
    return {"megabytes": megabytes, "parts": parts, "groups": groups}

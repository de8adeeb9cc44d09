"""Makes the request of the workflow: how long a text is, and in how many parts it is counted."""

from typing import Any

SIZES = {"test": (0.1, 2), "small": (4, 4), "large": (16, 16)}


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    megabytes, parts = SIZES[size]
    return {"megabytes": megabytes, "parts": parts}

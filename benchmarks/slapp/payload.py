"""Generates the request of the workflow: the amount of work of each function."""

from typing import Any

SIZES: dict[str, dict[str, dict[str, int]]] = {
    "test": {
        "network-io": {"requests": 1, "bytes": 512},
        "factorial": {"n": 500},
        "disk-io": {"mib": 1},
        "fibonacci": {"n": 12},
        "pi": {"digits": 300},
        "pbkdf2": {"iterations": 1000},
    },
    "small": {
        "network-io": {"requests": 1, "bytes": 16_384},
        "factorial": {"n": 9000},
        "disk-io": {"mib": 8},
        "fibonacci": {"n": 25},
        "pi": {"digits": 4500},
        "pbkdf2": {"iterations": 50_000},
    },
    "large": {
        "network-io": {"requests": 4, "bytes": 65_536},
        "factorial": {"n": 20_000},
        "disk-io": {"mib": 32},
        "fibonacci": {"n": 28},
        "pi": {"digits": 9500},
        "pbkdf2": {"iterations": 200_000},
    },
}


def payload(size: str) -> dict[str, Any]:
    """Return the request of that size: test, small or large."""
    return {"seed": "slapp", "sizes": SIZES[size]}

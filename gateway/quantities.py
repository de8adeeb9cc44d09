"""Memory, CPU and time as stack.yaml writes them: ``128Mi``, ``500m``, ``1m30s``."""

from __future__ import annotations

import re

from gateway.errors import GatewayError

# Kubernetes' suffixes, and Docker's lower-case ones that older stack files use.
_MEMORY_UNITS = {
    "": 1,
    "k": 10**3, "M": 10**6, "G": 10**9,
    "Ki": 2**10, "Mi": 2**20, "Gi": 2**30,
    "m": 2**20, "g": 2**30,
}  # fmt: skip
_TIME_UNITS = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
# More digits than any machine has bytes or nanoseconds would not fit into a float.
_NUMBER = r"([0-9]{1,18}(?:\.[0-9]{1,18})?)"
_MEMORY = re.compile(_NUMBER + r"([A-Za-z]*)")
_CPU = re.compile(_NUMBER + r"(m?)")
_TIME_PART = re.compile(_NUMBER + r"(ns|us|µs|ms|s|m|h)")
_DURATION = re.compile(f"(?:{_TIME_PART.pattern})+")


def memory_bytes(text: str) -> int:
    """Bytes of a memory quantity such as ``128Mi``; raises GatewayError if it is none."""
    match = _MEMORY.fullmatch(text)
    if match is None or match[2] not in _MEMORY_UNITS:
        raise GatewayError("bad-quantity", f"memory {text!r}: write it like 128Mi or 1Gi")
    return int(float(match[1]) * _MEMORY_UNITS[match[2]])


def cpu_cores(text: str) -> float:
    """Cores of a CPU quantity such as ``500m`` or ``2``; raises GatewayError if it is none."""
    match = _CPU.fullmatch(text)
    if match is None or float(match[1]) == 0:
        raise GatewayError("bad-quantity", f"cpu {text!r}: write it like 500m or 2")
    return float(match[1]) / (1000 if match[2] else 1)


def duration_s(text: str) -> float:
    """Seconds of a Go duration such as ``1m30s``; a bare number is in seconds."""
    if re.fullmatch(_NUMBER, text):
        return float(text)
    if not _DURATION.fullmatch(text):
        raise GatewayError("bad-quantity", f"duration {text!r}: write it like 500ms, 60s or 1m30s")
    return sum(float(value) * _TIME_UNITS[unit] for value, unit in _TIME_PART.findall(text))

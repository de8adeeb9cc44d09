"""How long this thread has been kept waiting for a core, by whatever else runs on the machine."""

from __future__ import annotations

from pathlib import Path

_SCHEDSTAT = Path("/proc/thread-self/schedstat")


def waited_s() -> float:
    """Seconds since the thread began; 0 where the kernel does not say (proc(5), schedstat)."""
    try:
        return int(_SCHEDSTAT.read_text().split()[1]) / 1e9
    except (OSError, ValueError, IndexError):
        return 0.0

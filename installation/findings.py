"""What a check of this machine found."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing that was looked for.

    Parameters
    ----------
    name
        What was looked for, such as ``strace``.
    ok
        Whether it is as it has to be.
    detail
        What is there, or why it is not usable; one line.
    fix
        The line that mends it; empty where nothing is to be mended.
    required
        Whether ``chiron deploy --local`` needs it; the rest is for other ways to run.
    """

    name: str
    ok: bool
    detail: str
    fix: str = ""
    required: bool = True

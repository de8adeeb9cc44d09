"""Measures everything in turn, so that the machine's drift meets all of it alike."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from evaluation.runtime.report import Round

#: Measures once: column -> milliseconds.
Probe = Callable[[], Round]

_WARM_UP = 10


def interleaved(probes: Sequence[Probe], rounds: int) -> list[Round]:
    """What all probes found in each round; every round begins with another one."""
    taken: list[Round] = []
    for number in range(_WARM_UP + rounds):
        columns: dict[str, float] = {}
        for turn in range(len(probes)):
            columns |= probes[(number + turn) % len(probes)]()
        taken.append(columns)
    return taken[_WARM_UP:]


def starts(moments_ms: Sequence[float], asked_ms: float = 0.0) -> tuple[float, float]:
    """When processes began: the first after it was asked for, and each next after the one before.

    Parameters
    ----------
    moments_ms
        When each of them had its first instruction.
    """
    ordered = sorted(moments_ms)
    return ordered[0] - asked_ms, (ordered[-1] - ordered[0]) / max(1, len(ordered) - 1)

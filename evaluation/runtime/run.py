"""Measures what the wrap runtime costs: everything on one embedded gateway, in one run."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import partial

from evaluation.runtime import large_data, overheads
from evaluation.runtime.report import Figure, Quantity, figures
from evaluation.runtime.rounds import Probe, interleaved
from generator.launcher import Launcher

ROUNDS, QUICK_ROUNDS = 500, 50

Progress = Callable[[str], None]


@dataclass(frozen=True)
class Part:
    """What is measured in turn, so that it can be compared: deployed by `probes` for that long."""

    name: str
    quantities: Sequence[Quantity]
    probes: Callable[[Launcher], AbstractContextManager[list[Probe]]]


PARTS = (
    Part("no-ops", overheads.QUANTITIES, overheads.probes),
    *(
        Part(f"large-{kind}", large_data.quantities(kind), partial(large_data.probes, kind))
        for kind in large_data.KINDS
    ),
)


def measure_runtime(
    launcher: Launcher, rounds: int, progress: Progress, parts: Sequence[Part] = PARTS
) -> tuple[Figure, ...]:
    """Every figure of `parts`, of `rounds` rounds each (at least two).

    Requests go straight to the processes of the embedded gateway of `launcher`, so that what its
    hop costs is in those figures alone that are about it.

    Raises
    ------
    ChironError
        ``wrong-output`` where an answer is not the reference executor's; ``not-local`` where the
        gateway's functions are no processes of this machine.
    """
    found: list[Figure] = []
    for part in parts:
        progress(f"deploying {part.name}")
        with part.probes(launcher) as probes:
            progress(f"{part.name}: {rounds} rounds of {len(probes)} measurements in turn")
            found += figures(part.quantities, interleaved(probes, rounds))
    return tuple(found)

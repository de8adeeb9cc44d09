"""Holds profiles of known functions against what is known of them, and against each other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from statistics import median, quantiles

from evaluation.known_functions import KNOWN, Known, write_known
from profiler.drift import latency_at
from profiler.invocation import Solo
from profiler.launcher import SoloLauncher
from profiler.profile import profile
from profiler.reference_loop import reference_ms
from profiler.solo import solo_plan, solo_workflow
from workflow.documents import Document
from workflow.profile import FunctionProfile, Profile, Source

Progress = Callable[[str], None]

#: The function that is profiled several times in a row; all that it does gets slower when the
#: machine does.
REPEATED = "pbkdf2"


class Checked(Document):
    """One known function.

    Attributes
    ----------
    truth, found
        Shares of its kinds; ``free`` is ``native`` and ``block`` together.
    profiled_ms, untraced_ms, untraced_spread_ms
        Its latency in the profile; and by runs without any tracing afterwards, corrected for the
        machine's drift, with their quartiles.
    """

    function: str
    truth: dict[str, float]
    found: dict[str, float]
    profiled_ms: float
    untraced_ms: float
    untraced_spread_ms: tuple[float, float]
    sources: tuple[Source, ...]

    @property
    def worst_points(self) -> float:
        """The largest error of a share, in percentage points."""
        return max(abs(self.found[kind] - share) for kind, share in self.truth.items()) * 100

    @property
    def latency_error(self) -> float:
        """How far the profile's latency is from the untraced one."""
        return (self.profiled_ms - self.untraced_ms) / self.untraced_ms


class ProfilerReport(Document):
    """How right and how stable profiles are.

    Attributes
    ----------
    seconds
        How long profiling all the known functions took, deploying included.
    repeated_ms
        Latencies of one function in profiles that were taken in a row, at one speed of the machine.
    """

    format: int = 1
    seconds: float
    functions: tuple[Checked, ...]
    repeated: str
    repeated_ms: tuple[float, ...]

    @property
    def repeated_range(self) -> float:
        """By how much the largest of them is above the smallest."""
        return max(self.repeated_ms) / min(self.repeated_ms) - 1


def check_profiler(
    launcher: SoloLauncher,
    *,
    repeats: int,
    samples: int,
    progress: Progress,
    probe_alone: bool = False,
) -> ProfilerReport:
    """Profile every known function and compare; then one of them `repeats` times.

    Parameters
    ----------
    samples
        Untraced runs of each function that its profile's latency is compared with.
    probe_alone
        Whether to make do without strace.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-known-") as scratch:
        folder = write_known(Path(scratch) / "known")
        start = time.monotonic()
        measured = profile(folder, launcher, progress=progress, probe_alone=probe_alone)
        seconds = time.monotonic() - start
        alone = solo_workflow(folder.workflow)
        progress("timing the functions untraced")
        with launcher.launch(alone, folder, solo_plan(alone)) as placed:
            solos = [
                Solo(placed.gateway, wrap, name, [b"{}"])
                for name, wrap in zip(alone.functions, placed.names, strict=True)
            ]
            untraced = _untraced(solos, measured, samples)
        one = write_known(Path(scratch) / "one", (REPEATED,))
        repeated = []
        for number in range(repeats):
            progress(f"profiling {REPEATED} again: {number + 1} of {repeats}")
            repeated.append(profile(one, launcher, probe_alone=probe_alone).functions[REPEATED])
    speed = median(each.reference_ms or 1.0 for each in repeated)
    return ProfilerReport(
        seconds=round(seconds, 1),
        functions=tuple(
            _checked(name, KNOWN[name], function, untraced[name])
            for name, function in measured.functions.items()
        ),
        repeated=REPEATED,
        repeated_ms=tuple(round(latency_at(each, speed), 3) for each in repeated),
    )


def _untraced(solos: list[Solo], measured: Profile, samples: int) -> Mapping[str, list[float]]:
    """Latencies of runs in turn, each as it would be at the speed at which it was profiled."""
    taken: dict[str, list[float]] = {solo.function: [] for solo in solos}
    references: dict[str, list[float]] = {solo.function: [] for solo in solos}
    for _ in range(samples):
        for solo in solos:
            references[solo.function].append(reference_ms())
            taken[solo.function].append(solo.invoke().latency_ms)
    return {
        name: latencies
        if KNOWN[name].by_clock
        else _at_speed_of(measured.functions[name], latencies, median(references[name]))
        for name, latencies in taken.items()
    }


def _at_speed_of(function: FunctionProfile, taken: list[float], speed_ms: float) -> list[float]:
    """The latencies `taken` at another speed, as they would have been when it was profiled."""
    drift = function.latency_ms / latency_at(function, speed_ms)
    return [latency * drift for latency in taken]


def _checked(name: str, known: Known, function: FunctionProfile, taken: list[float]) -> Checked:
    low, middle, high = quantiles(taken, n=4, method="inclusive")
    shares = {
        kind: function.time_ms(kind) / function.latency_ms for kind in ("cpu", "native", "block")
    }
    found = shares | {"free": shares["native"] + shares["block"]}
    return Checked(
        function=name,
        truth={kind: round(share, 4) for kind, share in known.truth.items()},
        found={kind: round(share, 4) for kind, share in found.items()},
        profiled_ms=function.latency_ms,
        untraced_ms=round(middle, 3),
        untraced_spread_ms=(round(low, 3), round(high, 3)),
        sources=function.sources,
    )

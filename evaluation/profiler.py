"""Holds profiles of known functions against what is known of them, and against each other."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles

from evaluation.bench.machine import Machine, this_machine
from evaluation.known_functions import KNOWN, write_known
from profiler.drift import latency_at
from profiler.invocation import Invocation, Solo
from profiler.launcher import SoloLauncher
from profiler.profile import profile
from workflow.documents import Document
from workflow.profile import FunctionProfile, Source

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
    profiled_ms
        Its latency in the profile.
    untraced_ms, untraced_spread_ms
        By runs without any tracing beside those of the profile, with their quartiles.
    latency_error, latency_error_spread
        How much longer the profile's runs took than those right beside them, as a share: the median
        of the pairs, and its quartiles.
    """

    function: str
    truth: dict[str, float]
    found: dict[str, float]
    profiled_ms: float
    untraced_ms: float
    untraced_spread_ms: tuple[float, float]
    latency_error: float
    latency_error_spread: tuple[float, float]
    sources: tuple[Source, ...]

    @property
    def worst_points(self) -> float:
        """The largest error of a share, in percentage points."""
        return max(abs(self.found[kind] - share) for kind, share in self.truth.items()) * 100


class ProfilerReport(Document):
    """How right and how stable profiles are.

    Attributes
    ----------
    seconds
        How long profiling all the known functions took, deploying included.
    command
        What was run, where nothing else did.
    repeated_ms
        Latencies of one function in profiles that were taken in a row, at one speed of the machine.
    """

    format: int = 1
    command: str
    machine: Machine
    seconds: float
    functions: tuple[Checked, ...]
    repeated: str
    repeated_ms: tuple[float, ...]

    @property
    def repeated_range(self) -> float:
        """By how much the largest of them is above the smallest."""
        return max(self.repeated_ms) / min(self.repeated_ms) - 1


@dataclass
class _Beside:
    """Runs every function once more after each of its untraced runs, in pairs."""

    pairs: dict[str, list[tuple[float, float]]] = field(default_factory=dict)
    seconds: float = 0.0

    def __call__(self, solo: Solo, run: Invocation) -> None:
        start = time.monotonic()
        pair = (run.latency_ms, solo.invoke().latency_ms)
        self.pairs.setdefault(solo.function, []).append(pair)
        self.seconds += time.monotonic() - start


def check_profiler(
    launcher: SoloLauncher,
    *,
    command: str,
    repeats: int,
    samples: int,
    progress: Progress,
    probe_alone: bool = False,
) -> ProfilerReport:
    """Profile every known function and compare; then one of them `repeats` times.

    Parameters
    ----------
    command
        What the report says that was run.
    samples
        Untraced runs of each function, at least, and as many beside them.
    probe_alone
        Whether to make do without strace.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-known-") as scratch:
        folder = write_known(Path(scratch) / "known")
        beside = _Beside()
        start = time.monotonic()
        measured = profile(
            folder,
            launcher,
            samples=samples,
            progress=progress,
            probe_alone=probe_alone,
            beside=beside,
        )
        seconds = time.monotonic() - start - beside.seconds
        one = write_known(Path(scratch) / "one", (REPEATED,))
        repeated = []
        for number in range(repeats):
            progress(f"profiling {REPEATED} again: {number + 1} of {repeats}")
            repeated.append(profile(one, launcher, probe_alone=probe_alone).functions[REPEATED])
    speed = median(each.reference_ms or 1.0 for each in repeated)
    return ProfilerReport(
        command=command,
        machine=this_machine(),
        seconds=round(seconds, 1),
        functions=tuple(
            checked(name, function, beside.pairs[name])
            for name, function in measured.functions.items()
        ),
        repeated=REPEATED,
        repeated_ms=tuple(round(latency_at(each, speed), 3) for each in repeated),
    )


def checked(name: str, function: FunctionProfile, pairs: Sequence[tuple[float, float]]) -> Checked:
    """The known function `name` beside its profile.

    Parameters
    ----------
    pairs
        Latencies of a run of the profile and of the run right beside it.
    """
    low, middle, high = quantiles((beside for _, beside in pairs), n=4, method="inclusive")
    errors = [run / beside - 1 for run, beside in pairs]
    low_error, error, high_error = quantiles(errors, n=4, method="inclusive")
    shares = {
        kind: function.time_ms(kind) / function.latency_ms for kind in ("cpu", "native", "block")
    }
    found = shares | {"free": shares["native"] + shares["block"]}
    return Checked(
        function=name,
        truth={kind: round(share, 4) for kind, share in KNOWN[name].truth.items()},
        found={kind: round(share, 4) for kind, share in found.items()},
        profiled_ms=function.latency_ms,
        untraced_ms=round(middle, 3),
        untraced_spread_ms=(round(low, 3), round(high, 3)),
        latency_error=round(error, 4),
        latency_error_spread=(round(low_error, 4), round(high_error, 4)),
        sources=function.sources,
    )

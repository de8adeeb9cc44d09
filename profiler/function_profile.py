"""From the samples of one function to its profile."""

from __future__ import annotations

from pathlib import Path
from statistics import median, quantiles

from profiler.blocking import waits
from profiler.files import files
from profiler.handler_run import HandlerRun
from profiler.periods import periods
from profiler.sampling import Samples
from workflow.profile import FunctionProfile


def function_profile(samples: Samples, runtime: str, handler: Path) -> FunctionProfile:
    """The profile of the function whose handler folder is `handler`.

    The latency is the median of the untraced runs. The periods are those of one traced run, the
    one whose duration is nearest to the median of them all: an average over several would have
    waits at places where no run had one.
    """
    latency_ms = round(median(samples.untraced_ms), 3)
    low, _, high = quantiles(samples.untraced_ms, n=4, method="inclusive")
    run = typical(samples.runs)
    found = files(samples.runs)
    return FunctionProfile(
        latency_ms=latency_ms,
        samples=len(samples.untraced_ms),
        spread_ms=(round(low, 3), round(high, 3)),
        periods=periods(waits(run), run.duration_ms, run.marker_s * 1000, latency_ms),
        memory_mib=round(samples.memory_mib, 2),
        files_read=found.read,
        files_written=found.written,
        output_bytes=len(samples.output.encode()),
        runtime=runtime,
        requirements=_requirements(handler),
    )


def typical(runs: tuple[HandlerRun, ...]) -> HandlerRun:
    """The run whose duration is nearest to the median."""
    middle = median(run.duration_ms for run in runs)
    return min(runs, key=lambda run: abs(run.duration_ms - middle))


def _requirements(handler: Path) -> tuple[str, ...]:
    """The lines of the folder's requirements.txt, without comments."""
    try:
        text = (handler / "requirements.txt").read_text(encoding="utf-8")
    except FileNotFoundError:
        return ()
    lines = (line.partition(" #")[0].strip() for line in text.splitlines())
    return tuple(line for line in lines if line and not line.startswith("#"))

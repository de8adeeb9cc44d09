"""A Pareto front as a picture: latency against CPUs, memory as the size of a point."""

from __future__ import annotations

from pathlib import Path

from scheduler.pareto import ParetoFront
from workflow.errors import ChironError

#: Area of the smallest and the largest point, in square points.
_SMALLEST, _LARGEST = 40.0, 400.0
#: Up to so many plans each has a label.
_LABELLED = 16


def draw(front: ParetoFront, path: Path) -> None:
    """Write the picture of `front` to the PNG file `path`.

    Raises
    ------
    ChironError
        ``no-matplotlib`` where that is not installed.
    """
    try:
        from matplotlib.figure import Figure  # loaded on use: it costs more than a search
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        raise ChironError(
            "no-matplotlib",
            "pictures need matplotlib: pip install 'chiron-openfaas[evaluation]', "
            "or name a .json file",
        ) from None
    latencies = [plan.latency_ms for plan in front.plans]
    cpus = [plan.cpus for plan in front.plans]
    memory = [plan.memory_mib for plan in front.plans]
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    axes.plot(latencies, cpus, color="0.8", drawstyle="steps-pre", zorder=1)
    met = ["tab:green" if plan.plan.meets_slo else "tab:red" for plan in front.plans]
    axes.scatter(latencies, cpus, s=_areas(memory), c=met, alpha=0.7, zorder=2)
    axes.axvline(front.slo_ms, color="0.4", linestyle="--", label=f"SLO {front.slo_ms:g} ms")
    for plan in front.plans if len(front.plans) <= _LABELLED else ():
        axes.annotate(
            f"{plan.memory_mib} MiB, wraps: {len(plan.plan.wraps)}",
            (plan.latency_ms, plan.cpus),
            xytext=(8, 4),
            textcoords="offset points",
            fontsize="x-small",
        )
    axes.set_title(
        f"{front.workflow}: {len(front.plans)} plans that no other one dominates\n"
        f"area: memory, {min(memory)} to {max(memory)} MiB; red: misses the SLO",
        fontsize="medium",
    )
    axes.set_xlabel("predicted latency [ms]")
    axes.set_ylabel("CPUs")
    axes.margins(0.15)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=120)


def _areas(memory: list[int]) -> list[float]:
    low, high = min(memory), max(memory)
    shares = [(mib - low) / (high - low) if high > low else 0.0 for mib in memory]
    return [_SMALLEST + (_LARGEST - _SMALLEST) * share for share in shares]

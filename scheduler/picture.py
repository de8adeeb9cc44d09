"""A picture of plans: latency against CPUs, with memory as area."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from chiron.scheduler.options import Option
from chiron.scheduler.pareto import undominated, weights
from chiron.scheduler.strategies import memory_mib
from chiron.workflow.errors import ChironError
from chiron.workflow.load import Load

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Area of the smallest and the largest point, in square points.
_SMALLEST, _LARGEST = 40.0, 400.0
_LABELLED = 16


@dataclass(frozen=True)
class Picture:
    """The considered plans, the SLO, and the chosen plan.

    Plans are judged by the ``percentile``-th percentile of their latency, under the ``load`` if
    given.
    """

    workflow: str
    slo_ms: float
    considered: Sequence[Option]
    percentile: float
    chosen: Option | None = None
    load: Load | None = None

    @property
    def title(self) -> str:
        rate = f" at {self.load.shown}" if self.load else ""
        return f"{self.workflow}{rate}: plans that no other one dominates"

    @property
    def front(self) -> list[Option]:
        """The undominated plans and the chosen plan, by falling latency."""
        front = undominated(self.considered)
        if self.chosen and not any(map(self.is_chosen, front)):
            front.append(self.chosen)
        return sorted(front, key=lambda option: -option.judged_ms)

    def is_chosen(self, option: Option) -> bool:
        """Return whether `option` is the chosen plan, or equals it in cost and latency."""
        return self.chosen is not None and weights(option) == weights(self.chosen)


def draw(picture: Picture, path: Path) -> None:
    """Write `picture` to the PNG file `path`; ``no-matplotlib`` if that is not installed."""
    try:
        from matplotlib.figure import Figure  # loaded on use: it costs more than a search
        from matplotlib.ticker import MaxNLocator
    except ImportError:
        line = f"{shlex.quote(sys.executable)} -m pip install 'chiron-openfaas[evaluation]'"
        raise ChironError(
            "no-matplotlib", f"pictures need matplotlib: {line}; or name a .json file"
        ) from None
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.subplots()
    _draw_plans(axes, picture)
    if picture.chosen:
        _draw_chosen(axes, picture.chosen)
    _label(axes, picture.front)
    memory = [memory_mib(option.plan) for option in picture.front]
    axes.set_title(
        f"{picture.title}\narea: memory, {min(memory)} to {max(memory)} MiB; red: misses the SLO",
        fontsize="medium",
    )
    axes.set_xlabel(f"predicted latency of {picture.percentile:g} % of requests [ms]")
    axes.set_ylabel("CPUs")
    axes.margins(0.15)
    axes.set_xlim(left=0)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(integer=True))
    axes.legend(frameon=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="png", dpi=120)


def _draw_plans(axes: Axes, picture: Picture) -> None:
    """Draw the considered plans, the front, and the SLO."""
    front, slo_ms = picture.front, picture.slo_ms
    latencies = [option.judged_ms for option in front]
    cpus = [option.plan.allocated_cpus for option in front]
    axes.scatter(
        [option.judged_ms for option in picture.considered],
        [option.plan.allocated_cpus for option in picture.considered],
        s=_SMALLEST / 2,
        c="0.8",
        label=f"considered ({len(picture.considered)})",
        zorder=1,
    )
    axes.plot(latencies, cpus, color="0.8", drawstyle="steps-pre", zorder=1)
    met = ["tab:green" if latency_ms <= slo_ms else "tab:red" for latency_ms in latencies]
    areas = _areas([memory_mib(option.plan) for option in front])
    axes.scatter(latencies, cpus, s=areas, c=met, alpha=0.7, zorder=2)
    axes.axvline(slo_ms, color="0.4", linestyle="--", label=f"SLO {slo_ms:g} ms")


def _draw_chosen(axes: Axes, chosen: Option) -> None:
    if predicted := chosen.plan.predicted:
        low_ms, high_ms = predicted.judged_range_ms
        axes.errorbar(
            predicted.judged_ms,
            chosen.plan.allocated_cpus,
            xerr=[[predicted.judged_ms - low_ms], [high_ms - predicted.judged_ms]],
            color="black",
            marker="*",
            markersize=9,
            capsize=4,
            linewidth=1,
            label=f"chosen: {predicted.shown} ms",
            zorder=3,
        )


def _label(axes: Axes, front: Sequence[Option]) -> None:
    """Label each plan with its memory and wraps, if there are few enough to be read."""
    most_ms = max(option.judged_ms for option in front)
    above = dict.fromkeys((option.plan.allocated_cpus for option in front), False)
    for option in front if len(front) <= _LABELLED else ():
        cpus = option.plan.allocated_cpus
        above[cpus] = not above[cpus]  # so that neighbours do not overlap
        side = -1 if option.judged_ms > 0.9 * most_ms else 1  # within the frame
        axes.annotate(
            f"{memory_mib(option.plan)} MiB, wraps: {len(option.plan.wraps)}",
            (option.judged_ms, cpus),
            xytext=(8 * side, 8 if above[cpus] else -14),
            textcoords="offset points",
            horizontalalignment="left" if side > 0 else "right",
            fontsize="x-small",
        )


def _areas(memory: list[int]) -> list[float]:
    low, high = min(memory), max(memory)
    shares = [(mib - low) / (high - low) if high > low else 0.0 for mib in memory]
    return [_SMALLEST + (_LARGEST - _SMALLEST) * share for share in shares]

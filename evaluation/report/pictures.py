"""Draws results with matplotlib: a colour for each planner, hatched for the mechanism pool."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from chiron.evaluation.bench.variants import OURS, REPLICATE, Variant
from chiron.evaluation.experiments.metric import MetricResult, MetricRow
from chiron.evaluation.experiments.metrics import LATENCY, latency_rounds, pooled
from chiron.evaluation.experiments.recorded import RunFolder
from chiron.evaluation.experiments.results import BreakdownResult, LoadResult, Result, SloResult
from chiron.evaluation.intervals import Interval

#: The variant that bars are divided by, if it was measured.
REFERENCE = Variant(OURS, "fork").label
#: Colours that the colour-blind can distinguish (Okabe and Ito).
_COLOURS = {
    "one-to-one": "#999999",
    "sand": "#E69F00",
    "faastlane": "#56B4E9",
    "faastlane-t": "#CC79A7",
    "faastlane+": "#0072B2",
    "faasflow": "#D55E00",
    "pgp": "#009E73",
}
PARTS = {
    "functions_ms": ("functions", "#009E73"),
    "starting_ms": ("starting processes", "#E69F00"),
    "wrap_ms": ("inside the wrap", "#56B4E9"),
    "outside_ms": ("outside: gateway and HTTP", "#999999"),
}
_DPI = 110
#: The style and the place of a legend, right of the axes.
_BESIDE: dict[str, Any] = {
    "fontsize": 8, "frameon": False, "loc": "center left", "bbox_to_anchor": (1.0, 0.5)
}  # fmt: skip
#: The share of a group's width that its bars fill.
_FILLED = 0.84


def pictures(result: Result, folder: RunFolder) -> dict[str, bytes]:
    """Return PNGs by name; the distribution of latencies is of the first workflow only."""
    match result:
        case MetricResult():
            drawn = {result.experiment: metric_bars(result, REFERENCE)}
            if result.experiment == LATENCY.experiment:
                drawn |= _distribution(folder)
            return drawn
        case SloResult():
            return {"slo": slo_bars(result)}
        case LoadResult():
            return {"load": load_curves(result)}
        case BreakdownResult():
            workflows = dict.fromkeys(row.workflow for row in result.rows)
            return {f"breakdown-{name}": breakdown_bars(result, name) for name in workflows}


def _distribution(folder: RunFolder) -> dict[str, bytes]:
    for recorded in folder.workflows:
        rounds = latency_rounds(recorded)
        latencies = {
            label: pooled(r) for label, r in rounds.items() if not label.startswith(REPLICATE)
        }
        if latencies:
            slo_ms = next(iter(recorded.setup.slo_ms.values()))
            return {f"latency-cdf-{recorded.name}": latency_cdf(recorded.name, latencies, slo_ms)}
    return {}


def metric_bars(result: MetricResult, reference: str) -> bytes:
    """Draw a bar for each variant, divided by `reference`, and a diamond for the paper's ratio.

    If `reference` was not measured, bars have the metric's own unit.
    """
    workflows = result.workflows
    ours = {w: row for w in workflows if (row := result.row(w, reference)) and _value(row)}
    made, (axis,) = figure(max(6.0, 2.5 + 1.9 * len(workflows)), 3.6)
    bars = _Bars(axis, workflows, list(dict.fromkeys(row.variant for row in result.rows)))
    for row in result.rows:
        if row.value is None or (ours and row.workflow not in ours):
            continue
        beside = ours.get(row.workflow)
        x = bars.draw(row.workflow, row.variant, row.value, _value(beside) if beside else 1.0)
        if beside and beside.published and row.published is not None:
            axis.plot(x, row.published / beside.published, "kD", markersize=4)
    of = f"\n÷ {reference}" if ours else f", {result.unit}"
    axis.set_ylabel(f"{result.metric}{of}\n({result.better} is better)")
    if ours:
        axis.axhline(1.0, color="black", linewidth=0.8)
        if any(row.published for row in result.rows):
            axis.plot([], [], "kD", markersize=4, label="paper")
    bars.end()
    return png(made)


def slo_bars(result: SloResult) -> bytes:
    """Draw the share of requests above the SLO, in a panel for each mechanism."""
    mechanisms = list(dict.fromkeys(row.mechanism for row in result.rows))
    workflows = list(dict.fromkeys(row.workflow for row in result.rows))
    made, axes = figure(max(7.0, 5.0 * len(mechanisms)), 3.4, len(mechanisms))
    for axis, mechanism in zip(axes, mechanisms, strict=True):
        rows = [row for row in result.rows if row.mechanism == mechanism]
        bars = _Bars(axis, workflows, list(dict.fromkeys(row.variant for row in rows)))
        for row in rows:
            bars.draw(row.workflow, row.variant, row.violations, 0.01)
        bars.end(rotation=20, ha="right")
        axis.set_title(mechanism, fontsize=10)
    axes[0].set_ylabel("requests above the SLO, %")
    return png(made)


class _Bars(NamedTuple):
    """Groups of bars on `axis`: a group for each workflow, a bar for each label."""

    axis: Any
    workflows: list[str]
    labels: list[str]

    def draw(self, workflow: str, label: str, found: Interval, unit: float) -> float:
        """Draw a bar and its interval in multiples of `unit`; return its x coordinate."""
        place, count = self.labels.index(label), len(self.labels)
        x = self.workflows.index(workflow) + (place - (count - 1) / 2) * _FILLED / count
        spread = [[(found.value - found.low) / unit], [(found.high - found.value) / unit]]
        self.axis.bar(x, found.value / unit, 0.95 * _FILLED / count, **_filling(label))
        self.axis.errorbar(
            x, found.value / unit, yerr=spread, color="black", linewidth=1, capsize=2
        )
        return x

    def end(self, **ticks: object) -> None:
        """Label the groups, and add a legend of the bars."""
        self.axis.set_xticks(range(len(self.workflows)), self.workflows, **ticks)
        for label in self.labels:
            self.axis.bar([0], [0], label=label, **_filling(label))
        self.axis.legend(**_BESIDE)


def _filling(label: str) -> dict[str, str]:
    """Return the colour of a variant's planner, and the pattern of its mechanism."""
    hatch = "//" if label.endswith(" pool") else ""
    return {"color": _colour(label), "hatch": hatch, "edgecolor": "white"}


def _value(row: MetricRow) -> float:
    """Return the metric of a row; 0 if it was not measured."""
    return row.value.value if row.value else 0.0


def latency_cdf(workflow: str, latencies_ms: Mapping[str, Sequence[float]], slo_ms: float) -> bytes:
    """Draw the cumulative distribution of latencies, a curve per variant (Chiron Figure 15)."""
    made, (axis,) = figure(7.5, 3.4)
    for label, values in latencies_ms.items():
        ordered = sorted(values)
        shares = [(index + 1) / len(ordered) for index in range(len(ordered))]
        axis.step(ordered, shares, where="post", label=label, **_line(label))
    axis.axvline(slo_ms, color="black", linestyle=":", linewidth=1)
    axis.text(slo_ms, 0.02, " SLO", fontsize=8)
    axis.set_xscale("log")
    _plain_ticks(axis.xaxis)
    axis.set_xlabel(f"{workflow}: end-to-end latency, ms")
    axis.set_ylabel("share of requests")
    axis.legend(**_BESIDE)
    return png(made)


def load_curves(result: LoadResult) -> bytes:
    """Draw the 95th percentile of latency by arrival rate, by workflow; crosses are failures."""
    workflows = list(dict.fromkeys(row.workflow for row in result.rows))
    made, axes = figure(max(7.0, 3.0 * len(workflows) + 1.5), 3.4, len(workflows))
    for axis, workflow in zip(axes, workflows, strict=True):
        rows = [row for row in result.rows if row.workflow == workflow]
        for label in dict.fromkeys(row.variant for row in rows):
            points = [(r.per_s, r.p95_ms) for r in rows if r.variant == label and r.p95_ms]
            failed = [(r.per_s, r.p95_ms) for r in rows if r.variant == label and r.failed > 0]
            # Hollow for mechanism pool, so that single points are distinguishable.
            style = {"marker": "o", "ms": 4, "mfc": "none" if label.endswith(" pool") else None}
            if points:
                axis.plot(*zip(*points, strict=True), label=label, **style, **_line(label))
            if failed := [point for point in failed if point[1]]:
                axis.plot(*zip(*failed, strict=True), "x", color=_colour(label), markersize=9)
        axis.set_yscale("log")
        _plain_ticks(axis.yaxis)
        axis.set_title(workflow, fontsize=10)
        axis.set_xlabel("requests/s arriving")
    axes[0].set_ylabel("95th percentile, ms")
    lines = [axis.get_legend_handles_labels() for axis in axes]
    # Rows with too few requests are not drawn, so panels, even all, may lack lines.
    most = max(lines, key=lambda labelled: len(labelled[0]))
    if most[0]:
        axes[-1].legend(*most, **_BESIDE)
    return png(made)


def _line(label: str) -> dict[str, object]:
    dashes = "--" if label.endswith(" pool") else "-"
    width = 2.2 if label.startswith(OURS) else 1.3
    return {"color": _colour(label), "linestyle": dashes, "linewidth": width}


def breakdown_bars(result: BreakdownResult, workflow: str) -> bytes:
    """Draw a bar for each variant; the text after it has the handlers' total waiting time."""
    rows = [row for row in result.rows if row.workflow == workflow][::-1]
    made, (axis,) = figure(8.2, 1.2 + 0.34 * len(rows))
    places = range(len(rows))
    left = [0.0] * len(rows)
    for part, (name, shade) in PARTS.items():
        widths = [float(getattr(row.typical, part)) for row in rows]
        axis.barh(places, widths, 0.7, left=left, color=shade, label=name)
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for place, row in enumerate(rows):
        text = f" {row.typical.latency_ms:.1f} ms, waiting {row.typical.waiting_ms:.1f}"
        axis.text(left[place], place, text, va="center", fontsize=8)
    axis.set_yticks(places, [row.variant for row in rows])
    axis.set_xlim(0, 1.35 * max(left))
    axis.set_xlabel(f"{workflow}: ms of one traced request")
    axis.legend(**_BESIDE)
    return png(made)


def _colour(label: str) -> str:
    """Return the colour of a variant's planner."""
    return _COLOURS.get(label.split(" ")[0], "#000000")


def figure(
    width: float, height: float, columns: int = 1, *, dpi: int = _DPI, share: bool = False
) -> tuple[Any, Sequence[Any]]:
    """Return an empty figure, `width` by `height` inches, and its axes, which may `share` y."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    axes = made.subplots(1, columns, sharey=share, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    return made, list(axes)


def png(made: Any) -> bytes:
    """Return the figure as PNG without matplotlib's version: equal figures are equal files."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def _plain_ticks(logarithmic: Any) -> None:
    """Set ticks at 1, 2, 5, 10 and so on, in plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter

    logarithmic.set_major_locator(LogLocator(subs=(1, 2, 5)))
    logarithmic.set_major_formatter("{x:g}")
    logarithmic.set_minor_formatter(NullFormatter())

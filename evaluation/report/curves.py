"""Curves: the distribution of latencies, and latencies while requests arrive at given rates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.experiments.load import LoadResult
from evaluation.report.style import colour, figure, png


def latency_cdf(workflow: str, latencies_ms: Mapping[str, Sequence[float]], slo_ms: float) -> bytes:
    """The share of requests that took no longer, a curve a variant (Chiron Figure 15)."""
    from matplotlib.ticker import LogLocator, NullFormatter

    made, (axis,) = figure(7.5, 3.4)
    for label, values in latencies_ms.items():
        ordered = sorted(values)
        shares = [(index + 1) / len(ordered) for index in range(len(ordered))]
        axis.step(ordered, shares, where="post", label=label, **_line(label))
    axis.axvline(slo_ms, color="black", linestyle=":", linewidth=1)
    axis.text(slo_ms, 0.02, " SLO", fontsize=8)
    axis.set_xscale("log")
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.xaxis.set_major_formatter("{x:g}")
    axis.xaxis.set_minor_formatter(NullFormatter())
    axis.set_xlabel(f"{workflow}: end-to-end latency, ms")
    axis.set_ylabel("share of requests")
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return png(made)


def load_curves(result: LoadResult) -> bytes:
    """The 95th percentile of latency by arrival rate, a panel a workflow; crosses are failures."""
    from matplotlib.ticker import LogLocator, NullFormatter

    workflows = list(dict.fromkeys(row.workflow for row in result.rows))
    made, axes = figure(max(7.0, 3.0 * len(workflows) + 1.5), 3.4, len(workflows))
    for axis, workflow in zip(axes, workflows, strict=True):
        rows = [row for row in result.rows if row.workflow == workflow]
        for label in dict.fromkeys(row.variant for row in rows):
            points = [(r.per_s, r.p95_ms) for r in rows if r.variant == label and r.p95_ms]
            failed = [(r.per_s, r.p95_ms) for r in rows if r.variant == label and r.failed > 0]
            if points:
                axis.plot(*zip(*points, strict=True), label=label, **_marker(label), **_line(label))
            if failed := [point for point in failed if point[1]]:
                axis.plot(*zip(*failed, strict=True), "x", color=colour(label), markersize=9)
        axis.set_yscale("log")
        axis.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
        axis.yaxis.set_major_formatter("{x:g}")
        axis.yaxis.set_minor_formatter(NullFormatter())
        axis.set_title(workflow, fontsize=10)
        axis.set_xlabel("requests/s arriving")
    axes[0].set_ylabel("95th percentile, ms")
    axes[-1].legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return png(made)


def _marker(label: str) -> dict[str, object]:
    """Hollow for mechanism pool, so that single points can be told apart."""
    return {"marker": "o", "markersize": 4, "mfc": "none" if label.endswith(" pool") else None}


def _line(label: str) -> dict[str, object]:
    dashes = "--" if label.endswith(" pool") else "-"
    width = 2.2 if label.startswith("pgp") else 1.3
    return {"color": colour(label), "linestyle": dashes, "linewidth": width}

"""Stacked bars: where the time of a request goes."""

from __future__ import annotations

from evaluation.experiments.breakdown import BreakdownResult
from evaluation.report.style import PARTS, figure, png


def breakdown_bars(result: BreakdownResult, workflow: str) -> bytes:
    """One bar a variant; behind it how long handlers waited for a core or the GIL, added up."""
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
    axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return png(made)

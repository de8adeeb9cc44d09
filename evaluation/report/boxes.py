"""Box plots of prediction errors, beside the paper's means (Chiron Figure 12)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evaluation.experiments.published import published_error
from evaluation.report.style import figure, png

_PREDICTORS = {"chiron": "D", "rfr": "v", "lstm": "^", "gnn": "s"}


def error_boxes(errors: Mapping[tuple[str, str], Sequence[float]]) -> bytes:
    """(P̂ - P) / P in per cent by workflow and mechanism; marks are the paper's mean |error|."""
    made, (axis,) = figure(max(6.5, 2.5 + 1.1 * len(errors)), 3.6)
    labels = [f"{workflow}\n{mechanism}" for workflow, mechanism in errors]
    values = [[100 * each for each in row] for row in errors.values()]
    axis.boxplot(values, widths=0.5, showmeans=True, medianprops={"color": "#009E73"})
    for predictor, marker in _PREDICTORS.items():
        points = [
            (place, 100 * found)
            for place, (workflow, mechanism) in enumerate(errors, 1)
            if (found := published_error(workflow, mechanism, predictor)) is not None
        ]
        if points:
            name = f"paper: {predictor}"
            axis.plot(*zip(*points, strict=True), marker, mfc="none", color="black", label=name)
    axis.axhline(0.0, color="black", linewidth=0.8)
    axis.set_yscale("symlog", linthresh=20)
    axis.yaxis.set_major_formatter("{x:g}")
    axis.set_xticks(range(1, len(labels) + 1), labels, fontsize=8)
    axis.set_ylabel("prediction error, %")
    if axis.get_legend_handles_labels()[0]:
        axis.legend(fontsize=8, frameon=False, loc="center left", bbox_to_anchor=(1.0, 0.5))
    return png(made)

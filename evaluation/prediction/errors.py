"""Prediction errors (P̂ - P) / P (Chiron §6.1) by predictor: summaries and box plots."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from chiron.evaluation.experiments.published import published_error
from chiron.evaluation.report.pictures import figure, png
from chiron.workflow.documents import Document

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The name of this project's predictor beside the baselines.
OURS = "chiron"
#: Distinguishable by the colour-blind (Okabe and Ito), in the order in which predictors come.
_COLOURS = ("#009E73", "#999999", "#E69F00", "#56B4E9", "#0072B2", "#CC79A7")
#: Errors up to this many per cent are drawn to scale, larger ones by their logarithm.
_LINEAR_PERCENT = 20
_TICKS = (-100, -50, -20, -10, -5, 0, 5, 10, 20, 50, 100, 200, 500)
_WHISKERS = (5, 95)
_DPI = 120


class ErrorSummary(Document):
    """Mean of the absolute errors, mean of the errors, and the 95th percentile of the absolute."""

    mean_absolute: float
    bias: float
    p95_absolute: float

    @classmethod
    def of(cls, errors: Sequence[float]) -> ErrorSummary:
        """Summarise at least one relative error."""
        absolute = [abs(error) for error in errors]
        spread = absolute if len(absolute) > 1 else absolute * 2
        return cls(
            mean_absolute=round(statistics.fmean(absolute), 6),
            bias=round(statistics.fmean(errors), 6),
            p95_absolute=round(statistics.quantiles(spread, n=20, method="inclusive")[-1], 6),
        )


class Distribution(Document):
    """The relative errors (P̂ - P) / P of one predictor, in the order of the measured rows.

    ``noise`` is the mean difference of two deployments of one plan, which no predictor can
    foresee; null if no plan was deployed twice.
    """

    workflow: str
    mechanism: str
    predictor: str
    errors: tuple[float, ...]
    noise: float | None = None

    @classmethod
    def of(
        cls,
        workflow: str,
        mechanism: str,
        predictor: str,
        errors: Iterable[float],
        noise: float | None = None,
    ) -> Distribution:
        """Return a distribution with rounded errors, as it is stored."""
        rounded = tuple(round(error, 6) for error in errors)
        return cls(
            workflow=workflow, mechanism=mechanism, predictor=predictor, errors=rounded, noise=noise
        )

    @property
    def summary(self) -> ErrorSummary:
        """The summary of these errors."""
        return ErrorSummary.of(self.errors)

    @property
    def place(self) -> tuple[str, str]:
        """Workflow and mechanism; distributions of equal place share a panel."""
        return self.workflow, self.mechanism


def by_place(distributions: Iterable[Distribution]) -> list[list[Distribution]]:
    """Group distributions by workflow and mechanism, in the order of first appearance."""
    places: dict[tuple[str, str], list[Distribution]] = {}
    for each in distributions:
        places.setdefault(each.place, []).append(each)
    return list(places.values())


def error_boxes(distributions: Sequence[Distribution], title: str) -> bytes:
    """Return a PNG with a panel for each workflow and mechanism, and a box for each predictor.

    Boxes are quartiles, whiskers the 5th and 95th percentile, diamonds means; the numbers above are
    mean absolute errors, triangles those of the paper. The grey band is the noise between two
    deployments of one plan.
    """
    places = by_place(distributions)
    names = list(dict.fromkeys(each.predictor for each in distributions))
    width = 1.4 + len(places) * (0.6 + 0.42 * len(names))
    made, axes = figure(width, 4.2, len(places), dpi=_DPI, share=True)
    for axis, place in zip(axes, places, strict=True):
        _panel(axis, place, names)
    _scale(axes[0], distributions)
    axes[0].set_ylabel("prediction error (P̂ - P) / P, %")
    made.suptitle(f"{title}; above: mean |error|; triangles: the paper's", fontsize=9)
    return png(made)


def _panel(axis: Axes, place: Sequence[Distribution], names: Sequence[str]) -> None:
    noise = next((each.noise for each in place if each.noise is not None), None)
    if noise is not None:
        axis.axhspan(-100 * noise, 100 * noise, color="#DDDDDD", zorder=0)
    axis.axhline(0.0, color="black", linewidth=0.8)
    for each in place:
        number = names.index(each.predictor)
        _box(axis, each, number, _COLOURS[number % len(_COLOURS)])
    axis.set_xlim(-0.6, len(names) - 0.4)
    axis.set_xticks(range(len(names)), names, rotation=40, ha="right", fontsize=8)
    axis.set_title("\n".join(place[0].place), fontsize=9)


def _box(axis: Axes, distribution: Distribution, number: int, colour: str) -> None:
    axis.boxplot(
        [[100 * error for error in distribution.errors]],
        positions=[number],
        widths=0.6,
        whis=_WHISKERS,
        patch_artist=True,
        boxprops={"facecolor": colour, "alpha": 0.6},
        medianprops={"color": "black"},
        flierprops={"marker": ".", "markersize": 2, "markeredgecolor": colour},
    )
    summary = distribution.summary
    axis.plot([number], [100 * summary.bias], "D", color="white", mec="black", ms=4)
    paper = published_error(*distribution.place, distribution.predictor.lower())
    if paper is not None:
        axis.plot([number], [100 * paper], "^", mfc="none", mec="black", ms=5)
    axis.annotate(
        f"{summary.mean_absolute:.1%}",
        (number, 1.0),
        xycoords=("data", "axes fraction"),
        ha="center",
        va="top",
        fontsize=6.5,
    )


def _scale(axis: Axes, distributions: Sequence[Distribution]) -> None:
    errors = [100 * error for each in distributions for error in each.errors]
    low, high = min(errors), max(errors)
    axis.set_yscale("symlog", linthresh=_LINEAR_PERCENT, linscale=1.5)
    axis.set_yticks(_TICKS, [f"{tick:+d}" if tick else "0" for tick in _TICKS])
    axis.minorticks_off()
    axis.set_ylim(min(1.15 * low, -5.0), max(1.6 * high, 8.0))

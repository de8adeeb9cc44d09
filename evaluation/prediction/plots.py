"""Draws the distribution of prediction errors, as Chiron's figure 12."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evaluation.prediction.distribution import Distribution, by_place, predictors

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Distinguishable by the colour-blind (Okabe and Ito), in the order in which predictors come.
_COLOURS = ("#009E73", "#999999", "#E69F00", "#56B4E9", "#0072B2", "#CC79A7")
#: Errors up to this many per cent are drawn to scale, larger ones by their logarithm.
_LINEAR_PERCENT = 20
_TICKS = (-100, -50, -20, -10, -5, 0, 5, 10, 20, 50, 100, 200, 500)
_WHISKERS = (5, 95)
_DPI = 120


def error_boxes(distributions: Sequence[Distribution], title: str) -> bytes:
    """A PNG with one panel for every workflow and mechanism, one box a predictor.

    Boxes are quartiles, whiskers the 5th and 95th percentile, diamonds means; the numbers above are
    mean absolute errors. The grey band is the noise between two deployments of one plan.

    Raises
    ------
    ImportError
        matplotlib is missing.
    """
    from matplotlib.figure import Figure

    places = by_place(distributions)
    names = predictors(distributions)
    figure = Figure(
        figsize=(1.4 + len(places) * (0.6 + 0.42 * len(names)), 4.2),
        dpi=_DPI,
        layout="constrained",
    )
    axes = figure.subplots(1, len(places), sharey=True, squeeze=False)[0]
    for axis, place in zip(axes, places, strict=True):
        _panel(axis, place, names)
    _scale(axes[0], distributions)
    axes[0].set_ylabel("prediction error (P̂ - P) / P, %")
    figure.suptitle(f"{title}; above: mean |error|", fontsize=9)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


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
    axis.grid(axis="y", alpha=0.3)
    axis.set_axisbelow(True)
    axis.spines[["top", "right"]].set_visible(False)


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

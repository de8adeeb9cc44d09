"""How the pictures look: one colour for each model, hatched for mechanism pool."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

#: Distinguishable by the colour-blind (Okabe and Ito); ours stands out.
_COLOURS = {
    "one-to-one": "#999999",
    "sand": "#E69F00",
    "faastlane": "#56B4E9",
    "faastlane-t": "#CC79A7",
    "faastlane+": "#0072B2",
    "pgp": "#009E73",
}
PARTS = {
    "functions_ms": ("functions", "#009E73"),
    "starting_ms": ("starting processes", "#E69F00"),
    "wrap_ms": ("inside the wrap", "#56B4E9"),
    "outside_ms": ("outside: gateway and HTTP", "#999999"),
}
_DPI = 110


def colour(label: str) -> str:
    """The colour of a variant's model."""
    return _COLOURS.get(label.split(" ")[0], "#000000")


def hatch(label: str) -> str:
    """The pattern of a variant's mechanism."""
    return "//" if label.endswith(" pool") else ""


def figure(width: float, height: float, columns: int = 1) -> tuple[Any, Sequence[Any]]:
    """An empty figure of so many inches, and its axes side by side."""
    from matplotlib.figure import Figure

    made = Figure(figsize=(width, height), dpi=_DPI, layout="constrained")
    axes = made.subplots(1, columns, squeeze=False)[0]
    for axis in axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", alpha=0.3)
        axis.set_axisbelow(True)
    return made, list(axes)


def png(made: Any) -> bytes:
    """The figure as PNG, without the time of its making, so that equal figures are equal files."""
    buffer = io.BytesIO()
    made.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()

"""What of a run is left out where a library is missing, and the line that brings it."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import NamedTuple

from chiron.installation.packages import extra_line

PICTURES = "pictures"


class Library(NamedTuple):
    """A library that only some of a run needs: its module, its name, chiron's extra that has it."""

    module: str
    name: str
    extra: str


_SCIKIT_LEARN = Library("sklearn", "scikit-learn", "evaluation")
_PYTORCH = Library("torch", "PyTorch", "baselines")
_NEEDED = {
    PICTURES: Library("matplotlib", "matplotlib", "evaluation"),
    "RFR": _SCIKIT_LEARN,
    "LSTM": _PYTORCH,
    "GNN": _PYTORCH,
    "Ray": Library("ray", "Ray", "comparison"),
    "dashboard": Library("playwright", "Playwright", "dev"),
    "Dask": Library("distributed", "Dask distributed", "comparison"),
}


def missing(part: str) -> Library | None:
    """The library that `part` of a run needs and that is not installed."""
    library = _NEEDED[part]
    return library if find_spec(library.module) is None else None


def left_out(parts: Iterable[str]) -> list[str]:
    """A line for every extra that would bring some of `parts`."""
    lacking: dict[str, list[str]] = {}
    for part in parts:
        if library := missing(part):
            lacking.setdefault(library.extra, []).append(f"{part} ({library.name} is missing)")
    return [
        f"left out: {', '.join(found)}: {extra_line(extra)}" for extra, found in lacking.items()
    ]

"""The optional libraries of a run: the parts left out without them, and how to install them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from typing import NamedTuple

from chiron.installation.packages import extra_line

PICTURES = "pictures"


class Library(NamedTuple):
    """A library that only parts of a run need: its module, its name, and the extra that has it."""

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
    """Return the library that `part` of a run needs, if it is not installed."""
    library = _NEEDED[part]
    return library if find_spec(library.module) is None else None


def left_out(parts: Iterable[str]) -> list[str]:
    """Return a line for each extra that some of `parts` lack, with its installation."""
    lacking: dict[str, list[str]] = {}
    for part in parts:
        if library := missing(part):
            lacking.setdefault(library.extra, []).append(f"{part} ({library.name} is missing)")
    return [
        f"left out: {', '.join(found)}: {extra_line(extra)}" for extra, found in lacking.items()
    ]

"""The generators of random numbers that a process shares."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Mapping
from typing import Any


def generators(*, draw: bool = False) -> dict[str, int]:
    """The states of the generators of random numbers that the process shares.

    With `draw`, after a number was drawn, as another function may: the states of two runs differ
    then, unless the function seeds the generator.
    """
    found = {}
    for name, (module, state, _) in _GENERATORS.items():
        if loaded := sys.modules.get(module):
            with contextlib.suppress(AttributeError):  # still being imported
                if draw:
                    _DRAWS[name](loaded)
                found[name] = state(loaded)
    return found


def reseed_all() -> None:
    """Have all begin anew, with fresh entropy."""
    for module, _, reseed in _GENERATORS.values():
        if loaded := sys.modules.get(module):
            reseed(loaded)


#: For each generator its module, and what returns its state and seeds it with fresh entropy.
_GENERATORS: Mapping[str, tuple[str, Callable[[Any], int], Callable[[Any], Any]]] = {
    "random.seed": (
        "random",
        lambda random: hash(random.getstate()),
        lambda random: random.seed(),
    ),
    "numpy.random.seed": (
        "numpy.random",
        lambda random: hash(tuple(map(bytes, random.get_state()[1:2])) + random.get_state()[2:]),
        lambda random: random.seed(),
    ),
    "torch.manual_seed": (
        "torch",
        lambda torch: hash(bytes(torch.get_rng_state().tolist())),
        lambda torch: torch.seed(),
    ),
}
_DRAWS: Mapping[str, Callable[[Any], Any]] = {
    "random.seed": lambda random: random.random(),
    "numpy.random.seed": lambda random: random.random_sample(),
    "torch.manual_seed": lambda torch: torch.rand(1),
}
#: A seed at the import is replaced: see `ProcessState.take_back`.
SEEDS = frozenset({*_GENERATORS, "random.setstate", "numpy.random.set_state"})

"""The generators of random numbers that a process shares."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wrap.functions.replaced import third_party


def generators(*, draw: int = 0) -> dict[str, int]:
    """The states of the generators of random numbers that the process shares.

    With `draw`, after so many numbers were drawn, as another function may, or after a library's
    generator was seeded. If each run draws another number of them, the states of two runs differ,
    unless the function seeds the generator.
    """
    found = {}
    for name, (module, state, _) in _GENERATORS.items():
        if loaded := sys.modules.get(module):
            with contextlib.suppress(AttributeError):  # still being imported
                if draw:
                    _DRAWS[name](loaded, draw)
                found[name] = state(loaded)
    for name, each in _of_libraries():
        if draw:
            random.Random.seed(each)
        found[name] = hash(each.getstate())
    return found


def reseed_all() -> None:
    """Have all begin anew, with fresh entropy."""
    for module, _, reseed in _GENERATORS.values():
        if loaded := sys.modules.get(module):
            reseed(loaded)
    for _, each in _of_libraries():
        random.Random.seed(each)  # a subclass may want other arguments


def _of_libraries() -> Iterator[tuple[str, random.Random]]:
    """The generators that libraries have as globals, each by its first name."""
    seen = {id(vars(random)["_inst"])}
    for module in third_party():
        for name, each in list(vars(module).items()):
            kind = type(each)
            if issubclass(kind, random.Random) and id(each) not in seen:
                seen.add(id(each))
                if not issubclass(kind, random.SystemRandom):
                    yield f"{module.__name__}.{name}", each


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
_DRAWS: Mapping[str, Callable[[Any, int], Any]] = {
    "random.seed": lambda random, count: random.getrandbits(32 * count),
    "numpy.random.seed": lambda random, count: random.random_sample(count),
    "torch.manual_seed": lambda torch, count: torch.rand(count),
}
#: A seed at the import is replaced: see `ProcessState.take_back`.
SEEDS = frozenset({*_GENERATORS, "random.setstate", "numpy.random.set_state"})

"""Process-wide random number generators."""

from __future__ import annotations

import contextlib
import random
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from wrap.functions.replaced import third_party


def generators(*, draw: int = 0) -> dict[str, int]:
    """Return generator name -> state of each process-wide generator.

    Args:
        draw: how many numbers to draw first, as another function might; libraries' generators are
            seeded instead. If each run draws a different count, equal states after two runs mean
            that the function seeds the generator.
    """
    found = {}
    for name, (module, state, draws) in _GENERATORS.items():
        if loaded := sys.modules.get(module):
            with contextlib.suppress(AttributeError):  # still being imported
                if draw:
                    draws(loaded, draw)
                found[name] = state(loaded)
    for name, each in _of_libraries():
        if draw:
            random.Random.seed(each)
        found[name] = hash(each.getstate())
    return found


def reseed_all() -> None:
    for module, _, _ in _GENERATORS.values():
        if loaded := sys.modules.get(module):
            loaded.seed()
    for _, each in _of_libraries():
        random.Random.seed(each)  # a subclass may need other arguments


def _of_libraries() -> Iterator[tuple[str, random.Random]]:
    """Yield the global generators of libraries, each with the first name found."""
    seen = {id(vars(random)["_inst"])}
    for module in third_party():
        for name, each in list(vars(module).items()):
            kind = type(each)
            if issubclass(kind, random.Random) and id(each) not in seen:
                seen.add(id(each))
                if not issubclass(kind, random.SystemRandom):
                    yield f"{module.__name__}.{name}", each


#: Generator -> its module, which seeds it with fresh entropy by ``seed()``; how to read its state,
#: and how to draw so many numbers.
_GENERATORS: Mapping[str, tuple[str, Callable[[Any], int], Callable[[Any, int], Any]]] = {
    "random.seed": (
        "random",
        lambda random: hash(random.getstate()),
        lambda random, count: random.getrandbits(32 * count),
    ),
    "numpy.random.seed": (
        "numpy.random",
        lambda random: hash(tuple(map(bytes, random.get_state()[1:2])) + random.get_state()[2:]),
        lambda random, count: random.random_sample(count),
    ),
    "torch.manual_seed": (
        "torch",
        lambda torch: hash(bytes(torch.get_rng_state().tolist())),
        lambda torch, count: torch.rand(count),
    ),
}
#: `ProcessState.take_back` replaces seeds set by an import.
SEEDS = frozenset({*_GENERATORS, "random.setstate", "numpy.random.set_state"})

"""Seeds random generators anew, so that each forked process draws its own numbers.

A fork copies the state of each random generator. The rule: no two processes draw the same numbers
from a generator that a module made or seeded at import. This includes generators with an explicit
seed. In a process of its own, a function draws the next number for each request, and not the first
number for all of them.

The generators are those of the standard library, SQLite, NumPy and PyTorch. Only libraries that
functions have imported are searched. Python itself seeds the functions of `random` anew.
"""

from __future__ import annotations

import contextlib
import ctypes
import gc
import os
import random
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

from wrap.functions.leftovers import alive

Seed = Callable[[], object]

_LIBC = ctypes.CDLL(None)
#: The generator behind the functions of `random`.
_PYTHONS = getattr(random, "_inst", None)
#: Bytes of entropy for generators that accept any number, and for the C library.
_ENTROPY, _C_ENTROPY = 32, 4


def generators() -> list[Seed]:
    """Return a seed function for each generator of this process, except frozen objects."""
    numpy, torch = sys.modules.get("numpy.random"), sys.modules.get("torch")
    found = alive(random.Random, *_numpy_kinds(numpy))
    if torch is not None:  # the collector does not track its generators, but their referrers
        referred = gc.get_referents(*gc.get_objects())
        found += {id(each): each for each in referred if type(each) is torch.Generator}.values()
    of_c = [_seed_c, *_seeds_of_sqlite(sys.modules.get("_sqlite3"))]
    return [*of_c, *(seed for each in found for seed in _seeds(each, numpy))]


def _seeds_of_sqlite(module: Any) -> Iterator[Seed]:
    """Yield a function that restarts SQL's ``random()`` and ``randomblob()`` in all connections."""
    if module is not None:
        with contextlib.suppress(OSError, AttributeError):  # built without its symbols
            library = ctypes.CDLL(getattr(module, "__file__", None))
            yield partial(library.sqlite3_randomness, 0, None)


def _numpy_kinds(numpy: Any) -> tuple[type, ...]:
    if numpy is None:
        return ()
    return (numpy.BitGenerator, numpy.RandomState, numpy.SeedSequence)


def _seeds(generator: Any, numpy: Any) -> Iterator[Seed]:
    if isinstance(generator, random.SystemRandom) or generator is _PYTHONS:
        return
    if isinstance(generator, random.Random):  # a subclass may need other arguments
        yield partial(random.Random.seed, generator)
    elif numpy is None or not isinstance(generator, _numpy_kinds(numpy)):
        yield generator.seed
    elif isinstance(generator, numpy.SeedSequence):
        yield partial(type(generator).__init__, generator, pool_size=generator.pool_size)
    elif isinstance(generator, numpy.RandomState):
        legacy = generator.get_state(legacy=False)["bit_generator"] == "MT19937"
        yield partial(_seed_by_bytes if legacy else _forget_normal, generator)
    elif isinstance(generator, numpy.MT19937):
        # NumPy seeds this generator by bytes in 10 us, and makes a new one in 300 us.
        yield partial(_seed_by_bytes, numpy.RandomState(generator))
    else:
        yield from _as_new(generator)


def _as_new(generator: Any) -> Iterator[Seed]:
    kind = type(generator)
    try:
        kind()
    except Exception as error:
        print(
            f"processes share the random numbers of {kind.__name__}, which has no default: {error}"
        )
    else:
        yield lambda: setattr(generator, "state", kind().state)


def _seed_c() -> None:
    """Seed ``rand``, ``random`` and ``drand48`` of C."""
    _LIBC.srandom(int.from_bytes(os.urandom(_C_ENTROPY), "little"))
    _LIBC.srand48(int.from_bytes(os.urandom(_C_ENTROPY), "little"))


def _seed_by_bytes(state: Any) -> None:
    state.seed(list(os.urandom(_ENTROPY)))


def _forget_normal(state: Any) -> None:
    """Drop the normal number that is already drawn. The bit generator is seeded by itself."""
    values = state.get_state(legacy=False)
    if values["has_gauss"]:
        state.set_state(values | {"has_gauss": 0, "gauss": 0.0})

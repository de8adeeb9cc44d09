"""What a module opened or seeded when it was imported is never shared by two processes."""

from __future__ import annotations

from typing import Any

import pytest

PLACES = {"fork": [[], [0], [1]], "pool": [[], [0], [1]], "main": [[0, 1]]}

#: Each generator draws one number for each request.
DRAWS = """
    import ctypes, json, random
    import numpy as np

    class Holder:
        def __init__(self):
            self.random = random.Random(7)

    class Odd(random.Random):
        def seed(self, *, by):
            super().seed(by)

        def __init__(self):
            self.seed(by=3)

    OWN, HOLDER, ODD = random.Random(), Holder(), Odd()
    random.seed(5)
    np.random.seed(5)
    np.random.standard_normal()
    STATE = np.random.RandomState(4)
    OTHER = np.random.RandomState(np.random.PCG64(4))
    OTHER.standard_normal()
    SEEDS = np.random.SeedSequence(6)
    NEW = [np.random.Generator(kind(3)) for kind in (
        np.random.MT19937, np.random.PCG64, np.random.PCG64DXSM, np.random.Philox, np.random.SFC64)]
    LIBC = ctypes.CDLL(None)
    LIBC.drand48.restype = ctypes.c_double

    def handle(req):
        drawn = {
            "random": random.random(), "own": OWN.random(), "held": HOLDER.random.random(),
            "odd": ODD.random(), "gauss": np.random.standard_normal(), "numpy": np.random.random(),
            "state": STATE.random_sample(), "other": OTHER.standard_normal(),
            "child": int(SEEDS.spawn(1)[0].generate_state(1)[0]),
            "rand": LIBC.rand(), "drand48": LIBC.drand48(),
            "spawned": float(NEW[1].spawn(1)[0].random()),
        }
        return json.dumps(drawn | {type(one.bit_generator).__name__: one.random() for one in NEW})
"""


@pytest.mark.parametrize("place", PLACES)
def test_no_two_draws_are_the_same(place: str, start: Any, wrap_image: Any) -> None:
    image = wrap_image(
        {"draw": DRAWS},
        PLACES[place],
        tasks={0: "draw", 1: "draw"},
        mechanism="pool" if place == "pool" else "fork",
        entry={"output": [0, 1]},
    )
    server = start(image, pool_concurrency="1")
    drawn = [each for _ in range(3) for each in server.request().json]
    same = {name for name in drawn[0] if len({each[name] for each in drawn}) < len(drawn)}
    assert not same

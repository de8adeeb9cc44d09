"""What a module opened or seeded when it was imported is never shared by two processes."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

#: Longest wait for what takes a moment, in seconds; only what is broken reaches it.
BOUND_S = 60

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


@pytest.fixture
def keeps_alive() -> Iterator[int]:
    """The port of a server that keeps connections and answers the last part of the path."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = self.path.rpartition("/")[2].encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


CONNECTED = """
    import json, os, requests

    BASE = f"http://127.0.0.1:{os.environ['PORT']}"
    SESSION = requests.Session()
    SESSION.get(BASE + "/hello")

    def handle(req):
        wanted = f"{os.getpid()}-{os.urandom(8).hex()}"
        return json.dumps([wanted, SESSION.get(f"{BASE}/{wanted}", timeout=30).text])
"""
FAR = {"fork": [[], [0], [1], [2]], "pool": [[], [0], [1], [2]], "all": [[0], [1], [2]]}


@pytest.mark.parametrize("place", FAR)
def test_no_process_gets_the_answer_to_anothers_request(
    place: str, start: Any, wrap_image: Any, keeps_alive: int, in_background: Any
) -> None:
    image = wrap_image(
        {"fetch": CONNECTED},
        FAR[place],
        tasks=dict.fromkeys(range(3), "fetch"),
        mechanism="pool" if place == "pool" else "fork",
        entry={"output": [0, 1, 2]},
    )
    server = start(image, PORT=str(keeps_alive))
    answers = [in_background(server.request) for _ in range(8)]
    found = [pair for answer in answers for pair in answer.result(BOUND_S).json]
    assert all(wanted == answered for wanted, answered in found)
    said = server.log.read_text()
    assert said.count(f"function fetch opens socket 127.0.0.1:{keeps_alive} when") == 1

"""The questions that a wrap sends to another over kept connections, in one process."""

from __future__ import annotations

import gc
import time
import weakref
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any

from wrap.event_loop.loop import Loop
from wrap.event_loop.threads import ThreadPool
from wrap.net.peer_connection import Message, PeerConnection, Received
from wrap.net.peer_pool import PeerPool
from wrap.net.peer_server import PeerServer

BOUND_S = 10.0
LONGEST = 1 << 20
KEY = b"the deployment's key"


class Silent:
    """Answers no message."""

    ending = busy = False

    def __init__(self) -> None:
        self.got = SimpleQueue[Received]()
        self.gone = SimpleQueue[Exception | None]()

    def handle(self, _: PeerConnection, message: Received) -> None:
        self.got.put(message)

    def connection_ended(self, _: PeerConnection, why: Exception | None) -> None:
        self.gone.put(why)


def test_a_question_that_is_cancelled_leaves_nothing_in_memory() -> None:
    loop, served, budget = Loop(), Silent(), SimpleNamespace(full=False)
    unbounded: Any = budget
    server = PeerServer(KEY, "127.0.0.1", LONGEST, loop, unbounded)
    server.serve(served)
    pool = PeerPool(KEY, LONGEST, loop, ThreadPool(), lambda _: None, lambda _: None)
    answers = SimpleQueue[Received | None]()
    asked = pool.ask(server.address, Message("question", ["half a pair: \ud800"]), answers.put)
    assert served.got.get(timeout=BOUND_S).fields == ["half a pair: \ud800"]
    asked.cancel()
    assert served.gone.get(timeout=BOUND_S) is None
    assert answers.empty()
    kept, until = weakref.ref(asked), time.monotonic() + BOUND_S
    del asked
    while kept() is not None and time.monotonic() < until:
        gc.collect()
        time.sleep(0.01)
    assert kept() is None
    server.close(0)

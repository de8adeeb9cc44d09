"""The cost of an object from wrap to wrap by each path, beside sendfile between two processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from math import inf
from typing import NamedTuple

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import (
    REMOTE,
    THREAD,
    Client,
    Shape,
    direct,
    shape,
    workflows,
)
from chiron.evaluation.runtime.handlers import handing
from chiron.evaluation.runtime.pairs import await_byte, tcp_pair
from chiron.evaluation.runtime.rounds import Part, Probe, Quantity, Round
from chiron.evaluation.runtime.servers import SERVERS, missing
from chiron.gateway.exchange import LARGEST_BYTES
from chiron.generator.stores import StorePlace
from chiron.workflow.paths import PathKind

_HANDING = "chiron-evaluate-give"
_SIZES = {1_000: "1 kB", 1_000_000: "1 MB", 100_000_000: "100 MB"}
_KERNEL, _WITHIN = "bare sendfile", "a thread"
#: Memory of a wrap: room for 100 MB at the producer and at the consumer.
_MEMORY_MIB = 2048
#: Reads as many bytes as its second argument from the socket of the first into one buffer, sends
#: a byte, and starts over.
_READER = """
import socket, sys
channel, size = socket.socket(fileno=int(sys.argv[1])), int(sys.argv[2])
copy = memoryview(bytearray(size))
while True:
    filled = 0
    while filled < size:
        count = channel.recv_into(copy[filled:])
        if not count:
            sys.exit()
        filled += count
    channel.send(b"!")
"""


class _Way(NamedTuple):
    """A way of objects to the other wrap: the path, the store, and the largest object in bytes."""

    name: str
    path: PathKind
    store: str = ""
    most_bytes: float = inf


WAYS = (
    _Way("direct", "auto"),
    _Way("gateway", "gateway", most_bytes=LARGEST_BYTES),
    *(_Way(store, "store", store) for store in SERVERS),
)


def paths() -> Part:
    """Return the part of every size and path, with the stores whose servers are installed."""
    ways = [way for way in WAYS if not way.store or missing(way.store) is None]
    quantities = [
        Quantity(f"{name} from wrap to wrap", partial(_figure_ms, system, size), system=system)
        for size, name in _SIZES.items()
        for system in (_KERNEL, *(way.name for way in ways if size <= way.most_bytes))
    ]
    # A round sends 100 MB several times on each path.
    return Part("paths", quantities, partial(_probes, ways), slower=5)


def _figure_ms(system: str, size: int, taken: Round) -> float:
    less = 0.0 if system == _KERNEL else taken[f"{_WITHIN}: {size}"]
    return taken[f"{system}: {size}"] - less


def shapes(ways: Sequence[_Way], places: dict[str, StorePlace]) -> dict[str, Shape]:
    """Return plans of two tasks in a row by name: in one wrap, and in two wraps for each way."""

    def made(name: str, second: Sequence[Sequence[int]], path: PathKind = "auto") -> Shape:
        stages = [THREAD, second]
        return shape(f"path-{name}", _HANDING, stages, memory_mib=_MEMORY_MIB, path=path)

    found = {_WITHIN: made("thread", THREAD)}
    for way in ways:
        across = made(way.name.lower(), REMOTE, way.path)
        found[way.name] = across.by(places[way.store]) if way.store else across
    return found


@contextmanager
def _probes(ways: Sequence[_Way], launcher: Launcher) -> Iterator[list[Probe]]:
    with ExitStack() as stack:
        found: list[Probe] = []
        for size in _SIZES:
            sent_ms = stack.enter_context(sending(size))
            found.append(partial(lambda name, ms: {name: ms()}, f"{_KERNEL}: {size}", sent_ms))
        needed = dict.fromkeys(way.store for way in ways if way.store)
        places = {name: stack.enter_context(SERVERS[name].start()) for name in needed}
        by_name = shapes(ways, places)
        deployed = stack.enter_context(
            workflows(launcher, list(by_name.values()), {_HANDING: handing})
        )
        for name, made in by_name.items():
            workflow = deployed[made.name]
            client = stack.enter_context(closing(direct(launcher.gateway.url, workflow.entry)))
            most_bytes = next((way.most_bytes for way in ways if way.name == name), inf)
            for size in (size for size in _SIZES if size <= most_bytes):
                body = str(size).encode()
                expected = workflow.expected(body)
                found.append(partial(_timed, f"{name}: {size}", client, body, expected))
        yield found


def _timed(name: str, client: Client, body: bytes, expected: bytes) -> Round:
    return {name: client.latency_ms(body, expected)}


@contextmanager
def sending(size: int) -> Iterator[Callable[[], float]]:
    """Yield a function that sends `size` bytes of memory to another process, by TCP and sendfile.

    It returns the milliseconds until the other process has all bytes.
    """
    memory = os.memfd_create("sent", os.MFD_CLOEXEC)
    with os.fdopen(memory, "wb") as file:
        file.write(b"x" * size)
        file.flush()
        ours, theirs = tcp_pair()
        command = [sys.executable, "-c", _READER, str(theirs.fileno()), str(size)]

        def sent_ms() -> float:
            begun, sent = time.perf_counter(), 0
            while sent < size:
                sent += os.sendfile(ours.fileno(), memory, sent, size - sent)
            await_byte(ours)
            return (time.perf_counter() - begun) * 1000

        with subprocess.Popen(command, pass_fds=[theirs.fileno()]), ours:
            theirs.close()
            sent_ms()
            yield sent_ms

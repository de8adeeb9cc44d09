"""The cost of passing data: 10 MB between tasks, and objects from one process to another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, Literal, cast

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import (
    PROCESS,
    REMOTE,
    THREAD,
    Client,
    Shape,
    Sizes,
    direct,
    shape,
    workflows,
)
from chiron.evaluation.runtime.handlers import large
from chiron.evaluation.runtime.rounds import Part, Probe, Quantity, Round
from chiron.templates import TEMPLATES
from chiron.workflow.paths import PathKind

# 10 MB between tasks, beside one copy through a pipe to another process

Kind = Literal["result", "input"]
_LARGE = "chiron-evaluate-large"
_PLACES: dict[str, tuple[Sizes, str, PathKind]] = {
    "thread": (THREAD, "fork", "auto"),
    "fork": (PROCESS, "fork", "auto"),
    "pool": (PROCESS, "pool", "auto"),
    "direct": (REMOTE, "fork", "auto"),
    "gateway": (REMOTE, "fork", "gateway"),
}
_REQUESTS = (b"?large", b"?small")
#: Reads as many bytes as its argument into one buffer, writes a byte, and starts over.
_READER = """
import os, sys
size = int(sys.argv[1])
while True:
    copy = memoryview(bytearray(size))
    filled = 0
    while filled < size:
        count = os.readv(0, [copy[filled:]])
        if not count:
            sys.exit()
        filled += count
    os.write(1, b"!")
"""


def large_shapes(kind: Kind) -> list[Shape]:
    """Return chains of three threads, but for the task that makes the data, or receives it."""
    found = []
    for place, (sizes, mechanism, path) in _PLACES.items():
        stages = (THREAD, sizes, THREAD) if kind == "result" else (THREAD, THREAD, sizes)
        found.append(shape(f"{place}-{kind}", _LARGE, stages, mechanism, path=path))
    return found


def _passing(place: str, kind: Kind) -> Quantity:
    return Quantity(
        f"10 MB {kind}, {place}: times one copy through a pipe",
        lambda r: (r[f"{place}-{kind}.large"] - r[f"{place}-{kind}.small"]) / r["pipe"],
        unit="x",
    )


@contextmanager
def _large_probes(kind: Kind, launcher: Launcher) -> Iterator[list[Probe]]:
    """Deploy the tasks, and check them once against the reference executor."""
    with ExitStack() as stack:
        copy_ms = stack.enter_context(copying(large.LARGE.encode()))
        found: list[Probe] = [lambda: {"pipe": copy_ms()}]
        deployed = stack.enter_context(workflows(launcher, large_shapes(kind), {_LARGE: large}))
        for name, workflow in deployed.items():
            entry = stack.enter_context(closing(direct(launcher.gateway.url, workflow.entry)))
            entry.latency_ms(b"?whole", workflow.expected(b"?whole"))
            expected = [workflow.expected(request) for request in _REQUESTS]
            found.append(partial(_passed_on, name, entry, expected))
        yield found


def _passed_on(name: str, client: Client, expected: list[bytes]) -> Round:
    """Time the request with the 10 MB and without them."""
    with_data, without = map(client.latency_ms, _REQUESTS, expected)
    return {f"{name}.large": with_data, f"{name}.small": without}


@contextmanager
def copying(data: bytes) -> Iterator[Callable[[], float]]:
    """Yield a function that copies `data` to another process and returns the milliseconds."""
    reader = subprocess.Popen(
        [sys.executable, "-c", _READER, str(len(data))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        bufsize=0,
    )
    into, said = cast(IO[bytes], reader.stdin), cast(IO[bytes], reader.stdout)

    def copy_ms() -> float:
        start = time.perf_counter()
        rest = memoryview(data)
        while rest:
            rest = rest[os.write(into.fileno(), rest) :]
        os.read(said.fileno(), 1)
        return (time.perf_counter() - start) * 1000

    with reader, into:
        yield copy_ms


def _large(kind: Kind) -> Part:
    pipe = Quantity(f"10 MB once through a pipe, beside each {kind}", lambda r: r["pipe"])
    passing = [_passing(place, kind) for place in _PLACES]
    return Part(f"large-{kind}", [pipe, *passing], partial(_large_probes, kind))


# Objects from one process to another, beyond the time to write them once

#: Consumers of an object, for the figures with several consumers.
_CONSUMERS = 4
_OBJECT_BYTES = (1_000, 10_000, 64_000, 128_000, 256_000, 1_000_000, 10_000_000, 100_000_000)

_PASS_OBJECTS = Path(__file__).with_name("pass_objects.py")


def _object_quantities(size: int) -> list[Quantity]:
    name = f"{size // 1000} kB"
    return [
        Quantity(f"{name} in a frame", lambda r: r[f"{size}.frame"]),
        Quantity(f"{name} written into shared memory", lambda r: r[f"{size}.write"]),
        *(_beyond_writing(size, name, consumers) for consumers in (1, _CONSUMERS)),
    ]


def _beyond_writing(size: int, name: str, consumers: int) -> Quantity:
    return Quantity(
        f"{name} in it to {consumers}, beyond a byte to one",
        lambda r: r[f"{size}.shared.{consumers}"] - r["1.frame"],
    )


@contextmanager
def _object_probes(_launcher: Launcher) -> Iterator[list[Probe]]:
    program = subprocess.Popen(
        [sys.executable, _PASS_OBJECTS, str(_CONSUMERS), "1", *map(str, _OBJECT_BYTES)],
        env=os.environ | {"PYTHONPATH": str(TEMPLATES / "python3-wrap")},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    into, said = cast(IO[str], program.stdin), cast(IO[str], program.stdout)

    def pass_objects() -> Round:
        into.write("\n")
        into.flush()
        return cast(Round, json.loads(said.readline()))

    with program, into:
        yield [pass_objects]


PARTS = (
    Part("objects", [*chain(*map(_object_quantities, _OBJECT_BYTES))], _object_probes),
    _large("result"),
    _large("input"),
)

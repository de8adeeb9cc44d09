"""End-to-end times of streams between wraps in patterns of writers and readers, beside a store.

References
----------
Floki (WoSC'21): one-to-one, fan-out, fan-in and all-to-all, 1 MB to 16 GB from each writer. The
end-to-end time of equation (1) is from the first writer's begin until the last reader has read all.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

from chiron.deployment.launcher import Launcher
from chiron.evaluation.runtime.deployed import Client, Shape, direct, plan_of, workflows
from chiron.evaluation.runtime.handlers import reading, writing
from chiron.evaluation.runtime.pairs import await_byte, tcp_pair
from chiron.evaluation.runtime.rounds import Figure
from chiron.evaluation.runtime.servers import SERVERS, missing
from chiron.workflow.dag import parse_dag
from chiron.workflow.errors import ChironError

_WRITING, _READING = "chiron-evaluate-write", "chiron-evaluate-read"
_STORE = "MinIO"
_STREAM, _BARE = "stream", "bare socket"
_PROGRAM = Path(__file__).with_name("transfer_objects.py")
_GOOD = timedelta(hours=1)
#: Bytes of a megabyte, and the default sizes that each writer writes.
_MB, _SIZES_MB = 1_000_000, (1.0, 16.0, 100.0)
#: Bytes that all rounds of a size and pattern transfer together; at least two rounds run.
_ENOUGH = 2000 * _MB
#: Wait for the reading program to start, in seconds: longer than it needs.
_STARTED_S = 0.3
#: Reads as many bytes as the second argument from the socket of the first, then sends a byte.
_READER = """
import socket, sys
channel, buffer = socket.socket(fileno=int(sys.argv[1])), bytearray(1 << 16)
left = int(sys.argv[2])
while left:
    left -= channel.recv_into(buffer)
channel.send(b"!")
"""


class Pattern(NamedTuple):
    """The numbers of writers and readers; every reader reads all bytes of every writer."""

    writers: int
    readers: int

    @property
    def name(self) -> str:
        """The name of the pattern in Floki."""
        if self == (1, 1):
            return "one-to-one"
        if self.writers == self.readers:
            return f"all-to-all {self.writers}"
        return f"fan-out {self.readers}" if self.writers == 1 else f"fan-in {self.writers}"


ONE_TO_ONE = Pattern(1, 1)
PATTERNS = (
    ONE_TO_ONE,
    *(Pattern(1, count) for count in (2, 4, 6)),
    *(Pattern(count, 1) for count in (2, 4, 6)),
    *(Pattern(count, count) for count in (2, 3)),
)


def measure_streams(
    launcher: Launcher, rounds: int, megabytes: float | None, progress: Callable[[str], None]
) -> tuple[Figure, ...]:
    """Return end-to-end times of every pattern, of each size or of `megabytes`, by each way.

    Raises the errors of `Client.post`, and ``wrong-output`` if a reader misses bytes.
    """
    found = list[Figure]()
    with ExitStack() as stack:
        store = stack.enter_context(_Stored.started()) if missing(_STORE) is None else None
        shapes = [_shape(pattern) for pattern in PATTERNS]
        sources = {_WRITING: writing, _READING: reading}
        deployed = stack.enter_context(workflows(launcher, shapes, sources))
        for pattern in PATTERNS:
            entry = deployed[pattern.name].entry
            client = stack.enter_context(closing(direct(launcher.gateway.url, entry)))
            for each in _SIZES_MB if megabytes is None else (megabytes,):
                name, size = f"{pattern.name}, {each:g} MB", round(each * _MB)
                progress(name)
                ways = _ways(pattern, size, client, store)
                count = max(2, min(rounds, _ENOUGH // (size * pattern.writers * pattern.readers)))
                found += _figures(name, ways, count)
    return tuple(found)


def _ways(
    pattern: Pattern, size: int, client: Client, store: _Stored | None
) -> dict[str, Callable[[], float]]:
    ways = {_STREAM: lambda: _streamed_s(client, pattern, size)}
    if pattern == ONE_TO_ONE:
        ways[_BARE] = lambda: _bare_s(size)
    if store is not None:
        ways[_STORE] = lambda: store.handed_over_s(pattern, size)
    return ways


def _figures(name: str, ways: dict[str, Callable[[], float]], rounds: int) -> Iterator[Figure]:
    taken: dict[str, list[float]] = {way: [] for way in ways}
    for number in range(rounds + 1):
        for turn in range(len(ways)):
            way = list(ways)[(number + turn) % len(ways)]
            taken[way].append(ways[way]() * 1000)
    for way, values in taken.items():
        yield Figure.of(name, values[1:], system=way)


def _shape(pattern: Pattern) -> Shape:
    """Return a plan of writers in one wrap and readers in another, one process each."""
    writers = [f"w{number}" for number in range(pattern.writers)]
    readers = [f"r{number}" for number in range(pattern.readers)]
    tasks = dict.fromkeys(writers, _WRITING) | dict.fromkeys(readers, _READING)
    edges = [[writer, reader, "stream"] for reader in readers for writer in writers]
    name = f"chiron-evaluate-{pattern.name.replace(' ', '-')}"
    workflow = parse_dag({"tasks": tasks, "edges": edges}, name)
    wraps = {
        number: ((), *((task,) for task in each)) for number, each in enumerate((writers, readers))
    }
    return Shape(pattern.name, workflow, plan_of(workflow, wraps, "pool"))


def _streamed_s(client: Client, pattern: Pattern, size: int) -> float:
    answer, _ = client.post(str(size).encode())
    told = json.loads(answer)
    each = told if pattern.readers > 1 else [told]
    for _, _, count in each:
        _check(count, size * pattern.writers)
    return float(max(end for _, end, _ in each) - min(begun for begun, _, _ in each))


def _bare_s(size: int) -> float:
    ours, theirs = tcp_pair()
    command = [sys.executable, "-c", _READER, str(theirs.fileno()), str(size)]
    piece = bytes(1 << 16)
    with subprocess.Popen(command, pass_fds=[theirs.fileno()]), ours:
        theirs.close()
        ours.sendall(piece[:1])  # the reader may have to start first
        time.sleep(_STARTED_S)
        begun = time.monotonic()
        left = size - 1
        while left:
            count = min(left, len(piece))
            ours.sendall(piece[:count])
            left -= count
        await_byte(ours)
        return time.monotonic() - begun


class _Stored:
    """Programs that pass objects through a store: all writers write, then all readers read."""

    def __init__(self, sign: Callable[[str, str], str], delete: Callable[[str], None]) -> None:
        self._sign = sign
        self._delete = delete
        most = max(max(pattern) for pattern in PATTERNS)
        self._programs = [
            subprocess.Popen(
                [sys.executable, str(_PROGRAM)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
            for _ in range(most)
        ]

    @classmethod
    @contextmanager
    def started(cls) -> Iterator[_Stored]:
        """Yield the programs, with a store that runs for the length of the block."""
        from minio import Minio

        with SERVERS[_STORE].start() as place:
            url = urlsplit(place.url)
            client = Minio(
                endpoint=f"{url.hostname}:{url.port}",
                access_key=url.username,
                secret_key=place.password,
                secure=False,
            )
            bucket = url.path.strip("/")
            stored = cls(
                lambda method, name: client.get_presigned_url(method, bucket, name, _GOOD),
                lambda name: client.remove_object(bucket, name),
            )
            try:
                yield stored
            finally:
                stored.close()

    def handed_over_s(self, pattern: Pattern, size: int) -> float:
        """Return the end-to-end time in seconds, and delete the objects."""
        names = [f"w{number}" for number in range(pattern.writers)]
        written = self._all([[("PUT", name)] for name in names], size)
        read = self._all([[("GET", name) for name in names]] * pattern.readers, size)
        for name in names:
            self._delete(name)
        return max(end for _, end in read) - min(begun for begun, _ in written)

    def _all(self, asked: Sequence[Sequence[tuple[str, str]]], size: int) -> list[list[float]]:
        for program, its in zip(self._programs, asked, strict=False):
            lines = [f"{method} {size} {self._sign(method, name)}\n" for method, name in its]
            program.stdin.write("".join(lines))  # type: ignore[union-attr]
            program.stdin.flush()  # type: ignore[union-attr]
        return [
            json.loads(program.stdout.readline())  # type: ignore[union-attr]
            for program, its in zip(self._programs, asked, strict=False)
            for _ in its
        ]

    def close(self) -> None:
        """Stop all programs."""
        for program in self._programs:
            with program:
                program.stdin.close()  # type: ignore[union-attr]


def _check(count: int, expected: int) -> None:
    if count != expected:
        message = f"{count} bytes have come of {expected}"
        raise ChironError("wrong-output", message, status=500)

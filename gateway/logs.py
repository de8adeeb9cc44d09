"""A function's log: the latest lines of its processes' output; GET /system/logs.

Output is stored in pieces, as a process wrote it, and split into lines only when read. So a process
that prints as fast as it can takes little of the gateway's time.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from math import ceil

from aiohttp import web

from chiron.gateway.names import NAMESPACE
from chiron.workflow.errors import ChironError

_LINES_KEPT = 2000
_LONGEST_LINE = 16 * 1024
_AT_ONCE_S = 0.001
_MOST_IN_A_ROW = 4
_PAUSE_S = 0.02
_LINES_AT_ONCE = 100
_BETWEEN_LINES_S = 0.01


@dataclass(frozen=True, slots=True)
class Line:
    """One line of one process, and the time it was read."""

    time: datetime
    instance: str
    text: str


@dataclass(frozen=True, slots=True)
class _Piece:
    """Lines that a process wrote at one time; `least` is a lower bound of their number."""

    time: datetime
    instance: str
    data: bytes
    least: int

    def lines(self) -> list[Line]:
        """Return its lines, split if too long to keep."""
        parts = (
            line[start : start + _LONGEST_LINE]
            for line in self.data.split(b"\n")
            for start in range(0, len(line) or 1, _LONGEST_LINE)
        )
        return [
            Line(self.time, self.instance, part.decode("utf-8", errors="replace").rstrip("\r"))
            for part in parts
        ]


class Log:
    """The last lines of a function's processes, across restarts and redeployments."""

    def __init__(self) -> None:
        self._pieces: deque[_Piece] = deque()
        self._least = 0
        #: The number of writes so far; a `follow` from here misses nothing.
        self.written = 0
        self._closed = False
        self._news = asyncio.Event()

    def write(self, instance: str, data: bytes) -> None:
        """Append lines, the last without its line end, and wake the followers."""
        lines = 1 + data.count(b"\n")
        if lines > _LINES_KEPT:
            data, lines = b"\n".join(data.rsplit(b"\n", _LINES_KEPT)[1:]), _LINES_KEPT
        least = max(lines, ceil(len(data) / (_LONGEST_LINE + 1)))
        self._pieces.append(_Piece(datetime.now(UTC), instance, data, least))
        self.written += 1
        self._least += least
        while self._least - self._pieces[0].least >= _LINES_KEPT:
            self._least -= self._pieces.popleft().least
        self._wake()

    def close(self) -> None:
        """End every `follow`: the function is removed."""
        self._closed = True
        self._wake()

    def read(self, since: datetime | None, instance: str | None, tail: int | None) -> list[Line]:
        """Return the kept lines, oldest first: after `since`, of `instance`, at most `tail`."""
        lines = [line for piece in self._pieces for line in piece.lines()][-_LINES_KEPT:]
        wanted = [
            line
            for line in lines
            if (since is None or line.time >= since) and (not instance or line.instance == instance)
        ]
        return wanted if tail is None else wanted[max(0, len(wanted) - tail) :]

    async def follow(self, start: int, instance: str | None) -> AsyncIterator[list[Line]]:
        """Yield the lines of `instance` from write number `start` on; end when the function goes.

        A reader that falls behind by more than the kept lines misses some.
        """
        while True:
            news, closed = self._news, self._closed
            fresh = list(islice(reversed(self._pieces), self.written - start))
            start = self.written
            for piece in reversed(fresh):
                if not instance or piece.instance == instance:
                    yield piece.lines()
            if closed:
                return
            await news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class Pauses:
    """When to pause reading an output, so that a process which only prints must wait.

    Otherwise the gateway would have to handle each printed line at once.
    """

    def __init__(self) -> None:
        self._last = 0.0
        self._in_a_row = 0

    def after_reading_s(self) -> float:
        """Return the pause in seconds: 0 unless several reads in a row followed at once."""
        now = time.monotonic()
        self._in_a_row = self._in_a_row + 1 if now - self._last < _AT_ONCE_S else 0
        self._last = now
        return _PAUSE_S if self._in_a_row >= _MOST_IN_A_ROW else 0.0


class LineReader:
    """Writes a process's output to the log in whole lines."""

    def __init__(self, log: Log, instance: str) -> None:
        self._log = log
        self._instance = instance
        self._rest = b""

    def feed(self, data: bytes) -> None:
        """Log the lines that `data` completes, and the start of a line that is too long."""
        lines, ended, self._rest = (self._rest + data).rpartition(b"\n")
        if ended:
            self._log.write(self._instance, lines)
        if len(self._rest) > _LONGEST_LINE:
            cut = (len(self._rest) - 1) // _LONGEST_LINE * _LONGEST_LINE
            self._log.write(self._instance, self._rest[:cut])
            self._rest = self._rest[cut:]

    def end(self) -> None:
        """Log the last line if it has no line end."""
        if self._rest:
            self._log.write(self._instance, self._rest)
            self._rest = b""


async def stream_logs(request: web.Request, name: str, log: Log) -> web.StreamResponse:
    """Answer with the lines that the query's since, tail and instance select; follow if asked."""
    query = request.query
    since = _time(query.get("since"))
    tail = _tail(query.get("tail"))
    instance = query.get("instance")
    answer = web.StreamResponse(headers={"Content-Type": "application/x-ndjson"})
    answer.enable_chunked_encoding()
    await answer.prepare(request)
    next_line = log.written
    with contextlib.suppress(ConnectionError):  # the reader may leave at any time
        await _send(answer, name, log.read(since, instance, tail))
        if query.get("follow") in ("1", "true"):
            async for lines in log.follow(next_line, instance):
                await _send(answer, name, lines)
        await answer.write_eof()
    return answer


async def _send(answer: web.StreamResponse, name: str, lines: list[Line]) -> None:
    """Send lines a few at a time, so that calls of functions proceed meanwhile."""
    for start in range(0, len(lines), _LINES_AT_ONCE):
        await answer.write(b"".join(_record(name, each) for each in lines[start:][:_LINES_AT_ONCE]))
        await asyncio.sleep(_BETWEEN_LINES_S)


def _record(name: str, line: Line) -> bytes:
    record = {
        "name": name,
        "namespace": NAMESPACE,
        "instance": line.instance,
        "timestamp": line.time.isoformat().replace("+00:00", "Z"),
        "text": line.text,
    }
    return json.dumps(record).encode() + b"\n"


def _time(text: str | None) -> datetime | None:
    if not text:
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError as error:
        raise ChironError("bad-time", f"since: {text!r} is not an RFC 3339 time") from error
    return time if time.tzinfo else time.replace(tzinfo=UTC)


def _tail(text: str | None) -> int | None:
    """Return the number of lines; None for all, which faas-cli sends as -1."""
    try:
        lines = int(text or -1)
    except ValueError as error:
        raise ChironError("bad-tail", f"tail: {text!r} is not a number of lines") from error
    return None if lines < 0 else lines

"""A function's log: its processes' output line by line, the latest lines kept, open to readers."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from datetime import UTC, datetime

_LINES_KEPT = 2000
_LONGEST_LINE = 16 * 1024


@dataclass(frozen=True)
class Line:
    """One line of one process, and when it was written."""

    number: int
    time: datetime
    instance: str
    text: str


class Log:
    """The last lines of a function's processes, across restarts and redeployments."""

    def __init__(self) -> None:
        self._lines: deque[Line] = deque(maxlen=_LINES_KEPT)
        self._written = 0
        self._closed = False
        self._news = asyncio.Event()

    def write(self, instance: str, text: str) -> None:
        """Append one line and wake those who follow."""
        self._lines.append(Line(self._written, datetime.now(UTC), instance, text))
        self._written += 1
        self._wake()

    def close(self) -> None:
        """End every `follow`: the function is gone."""
        self._closed = True
        self._wake()

    def read(self, since: datetime | None, instance: str | None, tail: int | None) -> list[Line]:
        """The kept lines, oldest first: those after `since`, of `instance`, at most `tail`."""
        lines = [line for line in self._lines if _wanted(line, since, instance)]
        return lines if tail is None else lines[max(0, len(lines) - tail) :]

    @property
    def written(self) -> int:
        """How many lines were ever written: where a `follow` that is to miss none starts."""
        return self._written

    async def follow(self, start: int, instance: str | None) -> AsyncIterator[Line]:
        """The lines of `instance` from number `start` on, until the function is removed."""
        while not self._closed:
            news = self._news
            fresh = [line for line in self._lines if line.number >= start]
            start = self._written
            for line in fresh:
                if _wanted(line, None, instance):
                    yield line
            if start == self._written:
                await news.wait()

    def _wake(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


def _wanted(line: Line, since: datetime | None, instance: str | None) -> bool:
    return (since is None or line.time >= since) and (not instance or line.instance == instance)


class LineReader(asyncio.Protocol):
    """Splits a process's output into lines of the log; a line too long to keep is broken up."""

    def __init__(self, log: Log, instance: str) -> None:
        self._log = log
        self._instance = instance
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        """Log the lines that `data` completes."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._write(line)
        while len(self._rest) > _LONGEST_LINE:
            self._write(self._rest[:_LONGEST_LINE])
            self._rest = self._rest[_LONGEST_LINE:]

    def connection_lost(self, exc: Exception | None) -> None:
        """Log what the process wrote last without ending its line."""
        if self._rest:
            self._write(self._rest)

    def _write(self, line: bytes) -> None:
        for start in range(0, len(line) or 1, _LONGEST_LINE):
            text = line[start : start + _LONGEST_LINE].decode("utf-8", errors="replace")
            self._log.write(self._instance, text.rstrip("\r"))

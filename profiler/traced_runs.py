"""Solo runs under strace: attached to a running process, or launched with it.

Attached strace stops the process in every system call. Launched, it stops it only in those that it
shows; but such a process is traced for all of its life, and is another one than is timed.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from profiler.handler_run import HandlerRun, handler_runs
from profiler.invocation import Solo
from profiler.strace_text import parse
from profiler.tracer import tracing

#: How long strace may take to write what has happened, in seconds.
_WRITTEN_S = 2.0
_POLL_S = 0.005


@dataclass(frozen=True)
class TracedHandler:
    """A run under strace, and for how long its thread had no core."""

    run: HandlerRun
    delayed_ms: float


class Tracer(Protocol):
    """Has one function run under strace."""

    def runs(self, numbers: Sequence[int]) -> list[TracedHandler]:
        """Runs on its inputs `numbers`, one after the other, without those not seen whole."""


@dataclass(frozen=True)
class Attached:
    """Attaches to process `pid`, which serves `solo`, for some runs at a time."""

    solo: Solo
    strace: str
    pid: int

    def runs(self, numbers: Sequence[int]) -> list[TracedHandler]:
        """As `Tracer.runs`; none where it is not certain which was which."""
        with tracing(self.strace, self.pid) as tracer:
            done = [self.solo.invoke(number) for number in numbers]
        seen = handler_runs(tracer.trace)
        if len(seen) != len(done):
            return []
        return [TracedHandler(run, one.delayed_ms) for run, one in zip(seen, done, strict=True)]


@dataclass(frozen=True)
class Launched:
    """Runs `solo` in a wrap that was launched under strace, which writes to `output`."""

    solo: Solo
    output: Path

    def runs(self, numbers: Sequence[int]) -> list[TracedHandler]:
        """As `Tracer.runs`."""
        return [run for run in map(self._run, numbers) if run]

    def _run(self, number: int) -> TracedHandler | None:
        before = self.output.stat().st_size
        done = self.solo.invoke(number)
        deadline = time.monotonic() + _WRITTEN_S
        while not (runs := handler_runs(parse(self._written_since(before)))):
            if time.monotonic() > deadline:
                return None
            time.sleep(_POLL_S)
        return TracedHandler(runs[-1], done.delayed_ms)

    def _written_since(self, position: int) -> str:
        with self.output.open("rb") as file:
            file.seek(position)
            return file.read().decode(errors="replace")

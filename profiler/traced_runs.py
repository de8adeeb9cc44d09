"""Solo runs under strace: attached to a running process, or launched with it.

Attached strace stops the process in every system call. Launched, it stops it only in those that it
shows; but such a process is traced for all of its life, and is another one than is timed.
"""

from __future__ import annotations

import time
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

    def run(self, number: int) -> TracedHandler | None:
        """A run on its input `number`; None where strace did not see it whole."""


@dataclass(frozen=True)
class Attached:
    """Attaches to process `pid`, which serves `solo`, for each run."""

    solo: Solo
    strace: str
    pid: int

    def run(self, number: int) -> TracedHandler | None:
        """As `Tracer.run`."""
        with tracing(self.strace, self.pid) as tracer:
            done = self.solo.invoke(number)
        runs = handler_runs(tracer.trace)
        return TracedHandler(runs[-1], done.delayed_ms) if runs else None


@dataclass(frozen=True)
class Launched:
    """Runs `solo` in a wrap that was launched under strace, which writes to `output`."""

    solo: Solo
    output: Path

    def run(self, number: int) -> TracedHandler | None:
        """As `Tracer.run`."""
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

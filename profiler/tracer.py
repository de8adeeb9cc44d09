"""strace: whether it may trace here, and solo runs under it, attached to a process or launched.

Attached strace stops the process in every system call. Launched, it stops it only in those that it
shows; but such a process is traced for all of its life, and is another one than is timed.
"""

from __future__ import annotations

import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from chiron.installation.packages import os_release
from chiron.installation.tracing import check_strace, check_tracing
from chiron.profiler.blocking import TRACED
from chiron.profiler.handler_run import HandlerRun, handler_runs
from chiron.profiler.invocation import Solo
from chiron.profiler.sandbox import Sandbox
from chiron.profiler.strace_text import Trace, parse
from chiron.workflow.errors import ChironError
from chiron.workflow.tied import tied

#: How long strace may take to attach, or to write its last lines and let go, in seconds.
LIMIT_S = 10.0
_POLL_S = 0.002
#: How long it may take to write what has happened, in seconds.
_WRITTEN_S, _WRITTEN_POLL_S = 2.0, 0.005


def require_tracing(variables: Mapping[str, str]) -> str:
    """The path of strace, once it has been seen to work.

    `variables` is usually ``os.environ``; strace is looked for on its PATH.

    Raises ``no-strace`` or ``no-ptrace``, with the line that mends it on this machine.
    """
    search_path = variables.get("PATH", "")
    strace = check_strace(search_path, os_release())
    if not strace.ok:
        message = f"profiling needs strace, which is {strace.detail}: {strace.fix}"
        raise ChironError("no-strace", message)
    tracing = check_tracing(search_path)
    if not tracing.ok:
        message = f"profiling needs to trace processes ({tracing.detail}): {tracing.fix}"
        raise ChironError("no-ptrace", message)
    return strace.detail


class Tracing:
    """What was traced: `trace` is there when the block is left."""

    trace: Trace


@contextmanager
def tracing(strace: str, pid: int, beside: Sequence[int] = ()) -> Iterator[Tracing]:
    """Trace process `pid`, all its threads, and what they start, with the program `strace`.

    So are the processes `beside` it. However the block is left, none is traced afterwards.

    Raises ``no-ptrace``: strace could not attach; its own words are in the message.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-strace-") as folder:
        output, said = Path(folder) / "trace", Path(folder) / "messages"
        with said.open("wb") as messages:
            tracer = subprocess.Popen(
                tied([strace, *_options(output), "-p", ",".join(map(str, [*beside, pid]))]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,  # ^C is for us; we then end it
            )
        try:
            _await_attached(tracer, said, pid)
            found = Tracing()
            yield found
        finally:
            _end(tracer)
        found.trace = parse(output.read_text(encoding="utf-8", errors="replace"))


def launching(strace: str, output: Path) -> list[str]:
    """The command that runs the command after it traced, into the file `output`.

    strace is no parent of the process but its child, so that the process is found and ended as if
    it were not traced. Calls that are not shown do not stop it (seccomp filters).
    """
    return [strace, "-D", "--seccomp-bpf", *_options(output), "--"]


def _options(output: Path) -> list[str]:
    # A question mark lets strace pass over calls that this architecture does not have.
    calls = ",".join(f"?{name}" for name in sorted(TRACED))
    return ["-f", "-ttt", "-T", "-e", f"trace={calls}", "-o", str(output)]


def _await_attached(tracer: subprocess.Popen[bytes], said: Path, pid: int) -> None:
    deadline = time.monotonic() + LIMIT_S
    while f"Process {pid} attached".encode() not in said.read_bytes():
        if tracer.poll() is not None or time.monotonic() > deadline:
            words = said.read_text(errors="replace").strip().splitlines()
            reason = words[0] if words else "it says nothing"
            raise ChironError("no-ptrace", f"strace does not attach: {reason}")
        time.sleep(_POLL_S)


def _end(tracer: subprocess.Popen[bytes]) -> None:
    """Have strace let go; the kernel does it where strace does not."""
    tracer.terminate()
    try:
        tracer.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


class Tracer(Protocol):
    """Has one function run under strace."""

    def runs(self, numbers: Sequence[int]) -> list[HandlerRun]:
        """Runs on its inputs `numbers`, one after the other, without those not seen whole."""


@dataclass(frozen=True)
class Attached:
    """Attaches to the processes of `sandbox`, which serve `solo`, for some runs at a time."""

    solo: Solo
    strace: str
    sandbox: Sandbox

    def runs(self, numbers: Sequence[int]) -> list[HandlerRun]:
        """As `Tracer.runs`; none where it is not certain which was which."""
        with tracing(self.strace, self.sandbox.pid, self.sandbox.beside()) as tracer:
            done = [self.solo.invoke(number) for number in numbers]
        seen = handler_runs(tracer.trace)
        if len(seen) != sum(one.tries for one in done):
            return []
        lasts = accumulate(one.tries for one in done)
        return [
            replace(seen[last - 1], delayed_ms=one.delayed_ms)
            for last, one in zip(lasts, done, strict=True)
        ]


@dataclass(frozen=True)
class Launched:
    """Runs `solo` in a wrap that was launched under strace, which writes to `output`."""

    solo: Solo
    output: Path

    def runs(self, numbers: Sequence[int]) -> list[HandlerRun]:
        return [run for run in map(self._run, numbers) if run]

    def _run(self, number: int) -> HandlerRun | None:
        before = self.output.stat().st_size
        done = self.solo.invoke(number)
        deadline = time.monotonic() + _WRITTEN_S
        while not (runs := handler_runs(parse(self._written_since(before)))):
            if time.monotonic() > deadline:
                return None
            time.sleep(_WRITTEN_POLL_S)
        return replace(runs[-1], delayed_ms=done.delayed_ms)

    def _written_since(self, position: int) -> str:
        with self.output.open("rb") as file:
            file.seek(position)
            return file.read().decode(errors="replace")

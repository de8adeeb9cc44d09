"""strace: check that it may trace here, and run functions under it, attached or launched.

An attached strace stops the process in every system call. A launched strace stops it only in the
calls that it shows, but for all its life. So the launched process is not the timed process.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import Protocol

from chiron.installation.packages import os_release
from chiron.installation.tracing import check_strace, check_tracing
from chiron.profiler.blocking import TRACED
from chiron.profiler.handler_run import HandlerRun, handler_runs
from chiron.profiler.invocation import Solo
from chiron.profiler.sandbox import Sandbox, find_sandbox
from chiron.profiler.strace_text import Trace, parse
from chiron.workflow.errors import ChironError
from chiron.workflow.tied import tied

#: The timeout of strace to attach, or to write its last lines and detach, in seconds.
LIMIT_S = 10.0
_POLL_S = 0.002
#: The timeout and the poll interval for strace to write a run, in seconds.
_WRITTEN_S, _WRITTEN_POLL_S = 2.0, 0.005


def require_tracing(variables: Mapping[str, str]) -> str:
    """Return the path of strace, after checking that it works.

    `variables` is usually ``os.environ``; its PATH is searched for strace.

    Raises ``no-strace`` or ``no-ptrace``, with the command that fixes it on this machine.
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
    """The result of `tracing`; `trace` is set when the block ends."""

    trace: Trace


@contextmanager
def tracing(strace: str, pid: int, beside: Sequence[int] = ()) -> Iterator[Tracing]:
    """Trace process `pid`, all its threads, and its children, with the program `strace`.

    The processes `beside` it are traced too. However the block ends, none is traced afterwards.

    Raises ``no-ptrace``, with strace's own message, if strace could not attach.
    """
    with tempfile.TemporaryDirectory(prefix="chiron-strace-") as folder:
        output, said = Path(folder) / "trace", Path(folder) / "messages"
        with said.open("wb") as messages:
            tracer = subprocess.Popen(
                tied([strace, *_options(output), "-p", ",".join(map(str, [*beside, pid]))]),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=messages,
                start_new_session=True,  # so that ^C reaches only this process, which ends strace
            )
        try:
            _await_attached(tracer, said, pid)
            temporary = Sandbox(pid).temporary_folder()
            found = Tracing()
            yield found
        finally:
            _end(tracer)
        text = output.read_text(encoding="utf-8", errors="replace")
        found.trace = parse(_in_tmp(text, temporary))


def _in_tmp(text: str, temporary: str) -> str:
    """Return a trace as of a container, where the files of the folder `temporary` are in /tmp.

    So the functions of a wrap name the files that they share alike.
    """
    return re.sub(rf'"{re.escape(temporary)}(?=[/"])', '"/tmp', text)


def launching(strace: str, output: Path) -> list[str]:
    """Return the command prefix that runs a command under trace, written to the file `output`.

    strace runs as the child of the process, not as its parent, so that the process is found and
    ended like an untraced one. Calls that are not shown do not stop it (seccomp filters).
    """
    return [strace, "-D", "--seccomp-bpf", *_options(output), "--"]


def _options(output: Path) -> list[str]:
    # A question mark makes strace ignore calls that this architecture lacks.
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
    """Terminate strace; the kernel detaches if strace does not."""
    tracer.terminate()
    try:
        tracer.wait(LIMIT_S)
    except subprocess.TimeoutExpired:
        tracer.kill()
        tracer.wait()


class Tracer(Protocol):
    """Runs one function under strace."""

    def runs(self, numbers: Sequence[int]) -> list[HandlerRun]:
        """Run the function on its inputs `numbers`, one by one; skip runs not completely seen."""


@dataclass(frozen=True)
class Attached:
    """Attaches to the processes of `sandbox`, which serve `solo`, for a batch of runs."""

    solo: Solo
    strace: str
    sandbox: Sandbox

    def runs(self, numbers: Sequence[int]) -> list[HandlerRun]:
        """Run as `Tracer.runs`; return an empty list if traces and runs cannot be matched."""
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
            return _in_tmp(file.read().decode(errors="replace"), self._temporary)

    @cached_property
    def _temporary(self) -> str:
        solo = self.solo
        return find_sandbox(solo.wrap, solo.gateway.url, solo.trace_key).temporary_folder()

"""Real strace on a real Python process whose waits are known."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from statistics import median
from subprocess import PIPE
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from chiron.profiler import tracer
from chiron.profiler.blocking import waits
from chiron.profiler.handler_run import HandlerRun, handler_runs
from chiron.profiler.invocation import Invocation
from chiron.profiler.shared_resources import files
from chiron.profiler.tracer import tracing
from chiron.workflow.errors import ChironError

pytestmark = pytest.mark.strace

_RUNS = 3
_CHILD = """
import os, select, socket, sys, threading, time

def compute(seconds):
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass

def handle(path):
    time.sleep(0.05)
    select.select([], [], [], 0.05)
    with open(path, "wb", buffering=0) as file:
        file.write(bytes(5_000_000))
        os.fsync(file.fileno())
    ours, theirs = socket.socketpair()
    threading.Timer(0.02, theirs.send, [b"late"]).start()
    ours.recv(10)
    compute(0.02)
    worker = threading.Thread(target=compute, args=[0.03])
    worker.start()
    worker.join()
    while len(os.listdir("/proc/self/task")) > 1:  # it goes on for a moment after that
        os.sched_yield()
    with socket.create_server(("127.0.0.1", 0)) as server:
        socket.create_connection(server.getsockname()).close()

for number, line in enumerate(sys.stdin):
    os.access(f"/chiron/begin/{number}", os.F_OK)
    handle(line.strip())
    os.access(f"/chiron/end/{number}", os.F_OK)
    print(flush=True)
"""


@pytest.fixture
def child(tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """A process that runs its handler for each line that it is sent, with a TMPDIR of its own."""
    command, own = [sys.executable, "-c", _CHILD], os.environ | {"TMPDIR": str(tmp_path)}
    with subprocess.Popen(command, env=own, stdin=PIPE, stdout=PIPE) as process:
        yield process
        process.kill()


def ask(child: subprocess.Popen[bytes], path: Path) -> None:
    assert child.stdin is not None and child.stdout is not None
    child.stdin.write(f"{path}\n".encode())
    child.stdin.flush()
    child.stdout.readline()


def waited_ms(run: HandlerRun, *syscalls: str) -> float:
    return sum(wait.end_ms - wait.start_ms for wait in waits(run) if wait.syscall in syscalls)


def second_wait_start_ms(run: HandlerRun) -> float:
    """From the begin on: the first one is the sleep."""
    return waits(run)[1].start_ms


def test_waits_of_a_real_process_are_found_and_its_computing_is_none(
    child: subprocess.Popen[bytes], strace: str, tmp_path: Path
) -> None:
    file = tmp_path / "five-megabytes"
    with tracing(strace, child.pid) as traced:
        for _ in range(_RUNS):
            ask(child, file)
    runs = handler_runs(traced.trace)
    assert len(runs) == _RUNS
    seen = [waits(run) for run in runs]
    assert all(waited_ms(run, "select", "pselect6") >= 49 for run in runs), seen
    # The sleep is one until a point in time, and seems shorter by what strace took to see it begin:
    # 48.7 after a gap of 1.6, on a machine with other things to do. Gap and sleep count together.
    assert min(second_wait_start_ms(run) for run in runs) >= 50, seen
    assert median(waited_ms(run, "clock_nanosleep") for run in runs) >= 49, seen
    assert max(waited_ms(run, "recvfrom") for run in runs) > 5
    assert {"connect", "recvfrom", "fsync"} <= {wait.syscall for found in seen for wait in found}
    assert all(waited_ms(run, "write", "fsync") > 0 for run in runs)
    computed = [run.duration_ms - sum(w.end_ms - w.start_ms for w in waits(run)) for run in runs]
    assert min(computed) >= 45
    # In a wrap, functions share the folder that each has alone here.
    assert "/tmp/five-megabytes" in files(runs).written  # noqa: S108


def test_of_runs_that_are_repeated_as_they_fail_the_last_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    runs = [HandlerRun(start_s, start_s + 1.0, (), 0.0) for start_s in range(5)]
    monkeypatch.setattr(tracer, "tracing", lambda *_: nullcontext(SimpleNamespace(trace=None)))
    monkeypatch.setattr(tracer, "handler_runs", lambda _: runs)
    solo: Any = SimpleNamespace(
        invoke=lambda number: Invocation("", 1.0, delayed_ms=number, tries=2 + number)
    )
    sandbox: Any = SimpleNamespace(pid=1, beside=tuple)
    attached = tracer.Attached(solo, "strace", sandbox)
    assert [(run.start_s, run.delayed_ms) for run in attached.runs([0, 1])] == [(1, 0), (4, 1)]
    assert attached.runs([0]) == []


def test_a_process_is_traced_by_nobody_after_an_error(
    child: subprocess.Popen[bytes], strace: str
) -> None:
    before = {process.pid for process in psutil.Process().children()}
    with pytest.raises(ZeroDivisionError), tracing(strace, child.pid):
        raise ZeroDivisionError
    status = Path(f"/proc/{child.pid}/status").read_text()
    assert "TracerPid:\t0\n" in status
    assert {process.pid for process in psutil.Process().children()} <= before


def test_a_process_that_ends_under_trace_leaves_what_was_seen(
    child: subprocess.Popen[bytes], strace: str, tmp_path: Path
) -> None:
    with tracing(strace, child.pid) as traced:
        ask(child, tmp_path / "file")
        child.kill()
        child.wait()
    assert len(handler_runs(traced.trace)) == 1


def test_a_process_that_is_not_there_is_an_error(strace: str) -> None:
    with subprocess.Popen([sys.executable, "-c", ""]) as gone:
        pass
    refused = pytest.raises(ChironError, match="strace does not attach")
    with refused as caught, tracing(strace, gone.pid):
        pass
    assert caught.value.code == "no-ptrace"

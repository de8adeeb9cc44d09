"""CPU and memory of processes that are known to compute and to hold memory."""

from __future__ import annotations

import contextlib
import subprocess
import sys
from collections.abc import Callable, Iterator

import pytest

from chiron.evaluation.bench.usage import Sandboxes, cpu_s, memory_mib, meter, trees
from chiron.workflow.errors import ChironError

BURN = "end = time.process_time() + 0.3\nwhile time.process_time() < end: pass\n"
FORK = f"""
import os, sys, time
for line in sys.stdin:
    if line == "fork\\n":
        child = os.fork()
        if not child:
            {BURN.replace(chr(10), chr(10) + " " * 12)}
            os._exit(0)
        os.waitpid(child, 0)
    elif line == "hold\\n":
        held = bytearray(b"x" * (40 << 20))
    elif line == "share\\n":
        if not os.fork():
            time.sleep(60)
            os._exit(0)
    print("done", flush=True)
"""


@pytest.fixture
def worker() -> Iterator[tuple[int, Callable[[str], None]]]:
    """A process, and what tells it to do something and waits until it is done."""
    process = subprocess.Popen(
        [sys.executable, "-c", FORK], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )

    def tell(word: str) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(f"{word}\n")
        process.stdin.flush()
        assert process.stdout.readline() == "done\n"

    tell("")
    yield process.pid, tell
    for each in trees([process.pid]).values():
        with contextlib.suppress(Exception):
            each.kill()
    process.communicate()


def test_the_cpu_time_of_a_forked_child_that_has_ended_counts(worker):
    pid, tell = worker
    before = cpu_s([pid])
    tell("fork")
    assert len(trees([pid])) == 1  # it is gone
    assert cpu_s([pid]) - before >= 0.25


def test_a_process_that_has_ended_is_said_to_be_gone(worker):
    with subprocess.Popen([sys.executable, "-c", ""]) as ended:
        ended.wait()
    with pytest.raises(ChironError) as gone:
        cpu_s([worker[0], ended.pid])
    assert gone.value.code == "process-gone"


def test_pages_that_a_child_shares_are_counted_once(worker):
    pid, tell = worker
    tell("hold")
    alone = memory_mib([pid])
    tell("share")
    together = Sandboxes((pid,)).memory_mib()
    assert together == pytest.approx(alone, abs=16)  # and not 40 MiB more


def test_sandboxes_of_another_machine_are_unseen_and_not_guessed():
    assert meter(["nobody-has-this-function"], "http://127.0.0.1:1") is None

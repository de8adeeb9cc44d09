"""Programs that end with the process that started them."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

from chiron.workflow.tied import tied

_STARTS_ANOTHER = """
import subprocess, sys
from chiron.workflow.tied import tied

started = subprocess.Popen(tied(["/bin/sh", "-c", "echo $$; exec sleep 1000"]))
started.wait()
"""


def test_a_tied_program_ends_when_its_starter_is_killed() -> None:
    """That the pipe ends says that nobody is left who could write to it."""
    with subprocess.Popen([sys.executable, "-c", _STARTS_ANOTHER], stdout=subprocess.PIPE) as one:
        assert one.stdout is not None
        assert int(one.stdout.readline()) != one.pid
        one.send_signal(signal.SIGKILL)
        assert one.stdout.read() == b""


def test_it_is_the_command_itself_with_its_arguments_and_status() -> None:
    command = ["/bin/sh", "-c", 'echo "$1"; exit 7', "sh", "a b"]
    done = subprocess.run(tied(command), capture_output=True, check=False)
    assert (done.stdout, done.returncode) == (b"a b\n", 7)


def test_it_does_not_start_when_its_starter_is_gone_already() -> None:
    command = tied(["/bin/echo", "started"])
    of_another = [str(os.getppid()) if part == str(os.getpid()) else part for part in command]
    assert subprocess.run(of_another, capture_output=True, check=True).stdout == b""

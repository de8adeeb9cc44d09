"""Runs the command line, in this process or in a process of its own.

In the tests' process nothing has to be loaded anew: a command has the streams, variables and folder
there that it would have in a process of its own.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from unittest.mock import patch

import pytest

from chiron.cli.main import main

COMMAND = [sys.executable, "-c", "from chiron.cli.main import main; main()"]


@dataclass
class Result:
    """How a command ended and what it printed."""

    status: int
    stdout: str
    stderr: str

    @property
    def json(self) -> Any:
        return json.loads(self.stdout)

    def error(self) -> str:
        """The last line of stderr, which says what is wrong; others tell how far it came."""
        assert self.stderr.endswith("\n")
        *progress, line = self.stderr.splitlines()
        assert all(told.startswith("· ") for told in progress), self.stderr
        assert line.startswith("error: ")
        return line.removeprefix("error: ")


def run_apart(words: list[str], stdin: bytes, variables: dict[str, str], folder: Path) -> Result:
    """Run the command in a process."""
    done = subprocess.run(
        [*COMMAND, *words],
        input=stdin,
        cwd=folder,
        env=variables,
        capture_output=True,
        timeout=600,
        check=False,
    )
    return Result(done.returncode, done.stdout.decode(), done.stderr.decode())


def run_here(words: list[str], stdin: bytes, variables: dict[str, str], folder: Path) -> Result:
    """Run the command in this process, whose descriptors are those of the command meanwhile."""
    with ExitStack() as stack:
        files = [stack.enter_context(TemporaryFile()) for _ in range(3)]
        files[0].write(stdin)
        files[0].seek(0)
        stack.enter_context(patch.dict(os.environ, variables, clear=True))
        stack.enter_context(chdir(folder))
        with standard_streams(files), own_signals(), pytest.raises(SystemExit) as ended:
            main(words)
        for file in files:
            file.seek(0)
        _, stdout, stderr = (file.read().decode() for file in files)
    return Result(int(ended.value.code or 0), stdout, stderr)


@contextmanager
def standard_streams(files: list[IO[bytes]]) -> Iterator[None]:
    """Descriptors 0, 1 and 2, and Python's streams over them, are these files."""
    before = [os.dup(number) for number in range(3)]
    streams = {}
    try:
        for number, file in enumerate(files):
            os.dup2(file.fileno(), number)
            name = ("stdin", "stdout", "stderr")[number]
            mode = "w" if number else "r"
            streams[name] = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        with patch.multiple(sys, **streams):
            yield
    finally:
        for stream in streams.values():
            stream.close()
        for number, each in enumerate(before):
            os.dup2(each, number)
            os.close(each)


@contextmanager
def own_signals() -> Iterator[None]:
    """Put back the handlers that a command replaces."""
    before = {
        number: signal.getsignal(number)
        for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)

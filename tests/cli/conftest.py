"""Runs the command line as a user does, in a folder of its own.

Most commands run in the tests' process, where nothing has to be loaded anew: with the streams,
variables and folder that one of their own would have.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, chdir, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any
from unittest.mock import patch

import pytest

from chiron.cli.main import main
from chiron.workflow.documents import dump

COMMAND = [sys.executable, "-c", "from chiron.cli.main import main; main()"]
ROOT = Path(__file__).parents[2]


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


Chiron = Callable[..., Result]


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """Variables of a machine on which nothing of OpenFaaS or chiron is set up."""
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path / "home"),
        "CHIRON_HOME": str(tmp_path / "home" / "chiron"),
        "LANG": "C.UTF-8",
        "PYTHONPATH": str(ROOT / "src"),
    }


@pytest.fixture
def chiron(environment: dict[str, str], tmp_path: Path) -> Chiron:
    """Runs `chiron` with the given arguments in the test's own folder.

    It has a process of its own where variables of Python are given, which it reads as it starts.
    """

    def run(*arguments: str | Path, stdin: bytes = b"", **variables: str) -> Result:
        words, known = [*map(str, arguments)], environment | variables
        if any(name.startswith("PYTHON") for name in variables):
            result = run_apart(words, stdin, known, tmp_path)
        else:
            result = run_here(words, stdin, known, tmp_path)
        assert "Traceback" not in result.stderr, result.stderr
        return result

    return run


def run_apart(words: list[str], stdin: bytes, variables: dict[str, str], folder: Path) -> Result:
    """Run the command in a process."""
    done = subprocess.run(
        [*COMMAND, *words],
        input=stdin,
        cwd=folder,
        env=variables,
        capture_output=True,
        timeout=200,
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
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@pytest.fixture
def artefacts(small, profile_of, platform, tmp_path: Path) -> Path:
    """The small workflow's folder, with profile.json and platform.json in the current folder."""
    (tmp_path / "profile.json").write_text(dump(profile_of(small.workflow)))
    (tmp_path / "platform.json").write_text(dump(platform))
    return small.path


class Running:
    """A command that goes on until it is ended."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.pid = process.pid
        self.said = ""
        self._killer = threading.Timer(200, process.kill)  # a silent one would be awaited for ever
        self._killer.start()

    def wait_for(self, pattern: re.Pattern[str]) -> str:
        """What the first group of `pattern` matches in what is printed on stderr from now on."""
        said = []
        assert self._process.stderr is not None
        for line in self._process.stderr:
            said.append(line)
            if match := pattern.search(line):
                return match[1]
        raise AssertionError(f"{pattern.pattern} never came: {''.join(said)}")

    def signal(self, number: signal.Signals) -> None:
        """Send a signal, and go on."""
        self._process.send_signal(number)

    def end(self, number: signal.Signals) -> int:
        """Send a signal; the exit status. What is said until then is in ``said``."""
        self.signal(number)
        _, self.said = self._process.communicate(timeout=60)
        assert "Traceback" not in self.said, self.said
        return self._process.returncode

    def close(self) -> None:
        """End it, whatever the test did."""
        self._killer.cancel()
        self._process.kill()
        self._process.communicate()


@pytest.fixture
def start(environment: dict[str, str], tmp_path: Path) -> Iterator[Callable[..., Running]]:
    """Starts `chiron` with the given arguments and does not wait for its end."""
    started: list[Running] = []

    def run(*arguments: str) -> Running:
        process = subprocess.Popen(
            [*COMMAND, *arguments],
            cwd=tmp_path,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(Running(process))
        return started[-1]

    yield run
    for running in started:
        running.close()

"""Runs the command line as a user does, in a folder of its own."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chiron.workflow.documents import dump
from tests.commands import COMMAND, Result, run_apart, run_here

ROOT = Path(__file__).parents[2]


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


@pytest.fixture
def artefacts(small, profile_of, platform, tmp_path: Path) -> Path:
    """The small workflow's folder, with profile.json and platform.json in the current folder."""
    (tmp_path / "profile.json").write_text(dump(profile_of(small.workflow)))
    (tmp_path / "platform.json").write_text(dump(platform))
    return small.path


@pytest.fixture
def planned(small, plan_of, artefacts: Path, tmp_path: Path) -> Path:
    """The same, with plan.json in the current folder."""
    (tmp_path / "plan.json").write_text(dump(plan_of(small.workflow, "pgp", 200.0)))
    return artefacts


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
        _, self.said = self._process.communicate(timeout=180)
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

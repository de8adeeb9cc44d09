"""What a stored result says of the machine and of the code that it was measured with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from evaluation.bench import machine
from evaluation.bench.machine import this_machine


def git(folder: Path, *arguments: str) -> str:
    """What git says in `folder`."""
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *author, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the module in a repository with a commit of something else."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    git(tmp_path, "init", "-q")
    git(tmp_path, "commit", "-q", "--allow-empty", "-m", "Begin")
    shutil.copy(machine.__file__, tmp_path)
    monkeypatch.setattr(machine, "_HERE", tmp_path)
    return tmp_path


def test_the_commit_is_that_of_the_code_and_says_whether_it_was_changed(code: Path) -> None:
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", "Add the module")
    head = git(code, "rev-parse", "--short=12", "HEAD")
    assert this_machine().commit == head
    with (code / "machine.py").open("a") as module:
        module.write("\n")
    assert this_machine().commit == f"{head}+"


def test_a_copy_that_is_installed_in_a_checkout_has_no_commit_of_it(code: Path) -> None:
    assert this_machine().commit == ""

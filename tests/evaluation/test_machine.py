"""What a stored result tells about the machine and the code that it was measured with."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from chiron.evaluation.bench import machine
from chiron.evaluation.bench.machine import no_evidence, require_evidence, this_machine
from chiron.workflow.errors import ChironError


def git(folder: Path, *arguments: str) -> str:
    """What git prints about `folder`."""
    author = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    done = subprocess.run(
        ["git", "-C", str(folder), *author, *arguments], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the module in a folder of a repository whose only commit has another file."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    bench, results = tmp_path / "evaluation" / "bench", tmp_path / "evaluation" / "results"
    bench.mkdir(parents=True)
    results.mkdir()
    (tmp_path / "other.py").write_text("first\n")
    git(tmp_path, "init", "-q")
    git(tmp_path, "add", ".")
    git(tmp_path, "commit", "-q", "-m", "Begin")
    shutil.copy(machine.__file__, bench)
    monkeypatch.setattr(machine, "_HERE", bench)
    monkeypatch.setattr(machine, "RESULTS", results)
    return tmp_path


@pytest.fixture
def committed(code: Path) -> Path:
    """The same, with the module in a commit."""
    git(code, "add", ".")
    git(code, "commit", "-q", "-m", "Add the module")
    return code


def test_a_clean_tree_is_named_by_its_commit(committed: Path) -> None:
    head = git(committed, "rev-parse", "--short=12", "HEAD")
    assert this_machine().commit == head
    assert no_evidence([head]) is None


@pytest.mark.parametrize("name", ["other.py", "evaluation/new.py"])
def test_what_differs_from_the_commit_is_named_by_its_hash(name: str, committed: Path) -> None:
    head = this_machine().commit
    found = []
    for content in ("one\n", "two\n", "one\n"):
        (committed / name).write_text(content)
        found.append(this_machine().commit)
    assert found[0].startswith(f"{head}-dirty-")
    assert found[0] == found[2] != found[1]
    assert "dirty" in (no_evidence([head, found[0]]) or "")


def test_results_and_what_git_ignores_leave_a_tree_clean(committed: Path) -> None:
    """Otherwise the first of several results would keep the others from being stored."""
    (committed / ".git" / "info" / "exclude").write_text("out/\n")
    (committed / "out").mkdir()
    for file in (committed / "out" / "x.json", committed / "evaluation" / "results" / "x.json"):
        file.write_text("{}")
    assert "dirty" not in this_machine().commit


def test_if_git_fails_the_tree_is_not_taken_for_clean(
    committed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask = machine._git
    monkeypatch.setattr(machine, "_git", lambda *words: None if "diff" in words else ask(*words))
    assert this_machine().commit == ""


@pytest.mark.parametrize("folder", ["evaluation/results", "evaluation/results/quick"])
def test_evidence_needs_a_clean_tree(folder: str, committed: Path) -> None:
    require_evidence(this_machine(), committed / folder)
    (committed / "other.py").write_text("changed\n")
    with pytest.raises(ChironError, match="commit all changes first") as refusal:
        require_evidence(this_machine(), committed / folder)
    assert refusal.value.code == "no-evidence"
    assert "\n" not in refusal.value.message
    require_evidence(this_machine(), committed / "out")

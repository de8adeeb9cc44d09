"""The build script of faas-cli says in one line what it lacks."""

import shutil
import subprocess
from pathlib import Path

import pytest

import chiron.installation

SCRIPT = Path(chiron.installation.__file__).parent / "faas-cli" / "install.sh"


@pytest.fixture
def without_go(tmp_path):
    """A PATH that has what a shell script needs, and no Go."""
    for name in ("sh", "dirname", "sed", "mkdir", "mv", "rm"):
        (tmp_path / name).symlink_to(shutil.which(name) or "/bin/false")
    return {"PATH": str(tmp_path)}


def run(*arguments: str, env: dict[str, str]) -> subprocess.CompletedProcess[str]:
    command = ["/bin/sh", str(SCRIPT), *arguments]
    return subprocess.run(command, env=env, capture_output=True, text=True, timeout=60, check=False)


def test_without_go_it_says_so_and_builds_nothing(without_go, tmp_path):
    done = run(str(tmp_path / "prefix"), env=without_go)
    assert done.returncode == 1
    assert done.stderr.count("\n") == 1
    assert "Go" in done.stderr
    assert not (tmp_path / "prefix").exists()


def test_without_a_prefix_it_says_how_it_is_called(without_go):
    done = run(env=without_go)
    assert done.returncode == 2
    assert "PREFIX" in done.stderr

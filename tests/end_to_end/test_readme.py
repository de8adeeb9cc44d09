"""Every block of commands of the README does what it says, on the embedded gateway."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.gateway.embedded import EmbeddedGateway
from chiron.workflow.documents import dump

ROOT = Path(__file__).parents[2]
_BINARIES = Path(sys.executable).parent
FAAS_CLI = shutil.which("faas-cli") or shutil.which("faas-cli", path=str(_BINARIES))
MAKE, WHOLE_PATH, STEPS, BY_HAND = re.findall(
    r"^```sh\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
)
REGISTRY = "registry.example/team"

needs_faas_cli = pytest.mark.skipif(
    FAAS_CLI is None, reason="no faas-cli here: installation/faas-cli/install.sh builds it"
)
Shell = Callable[..., str]


def program(file: Path, script: str) -> None:
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)


@pytest.fixture
def shell(home: Path, tmp_path: Path) -> Shell:
    """Runs lines in a folder that looks as a checkout that is set up; what they print."""
    binaries = tmp_path / ".venv" / "bin"
    binaries.mkdir(parents=True)
    program(
        binaries / "chiron",
        f'exec {sys.executable} -c "from chiron.cli.main import main; main()" "$@"',
    )
    if FAAS_CLI:
        (binaries / "faas-cli").symlink_to(FAAS_CLI)
    (tmp_path / "benchmarks").symlink_to(ROOT / "benchmarks")
    environment = {
        "HOME": str(tmp_path),
        "CHIRON_HOME": str(home),
        "PATH": f"{binaries}:{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT),
        "OPENFAAS_CONFIG": str(tmp_path / "config"),
    }

    def run(lines: str, **variables: str) -> str:
        done = subprocess.run(
            ["bash", "-ec", lines],
            cwd=tmp_path,
            env=environment | variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=800,
            check=False,
        )
        assert done.returncode == 0, done.stdout
        return done.stdout

    return run


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


def test_what_make_is_asked_for_is_in_the_makefile():
    asked = [line.split("#")[0].split() for line in MAKE.splitlines()]
    assert [words[0] for words in asked] == ["make"] * len(asked)
    for _, target in asked:
        subprocess.run(["make", "--dry-run", target], cwd=ROOT, check=True, capture_output=True)


@pytest.mark.slow
@pytest.mark.strace
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("strace")
def test_the_whole_path_in_one_command(shell):
    assert "SLO of 200 ms" in shell(WHOLE_PATH)


@pytest.mark.slow
@needs_faas_cli
@pytest.mark.faas_cli
@pytest.mark.strace
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("strace")
def test_step_by_step(shell, small):
    gateway, services = free_port(), free_port()
    ready = f"until (: </dev/tcp/127.0.0.1/{gateway}) 2>/dev/null; do sleep 0.1; done"
    lines = re.sub(r"\bDIR\b", str(small.path), re.sub(r"\bNAME\b", "small", STEPS)).replace(
        "chiron serve &",
        f"chiron serve --gateway-port {gateway} --port {services} & trap 'kill $!' EXIT; {ready}",
    )
    said = shell(lines, OPENFAAS_URL=f"http://127.0.0.1:{gateway}")
    assert "joined" in said.partition("next: faas-cli deploy")[2]


@pytest.mark.slow
@needs_faas_cli
@pytest.mark.faas_cli
def test_by_hand_with_a_registry(shell, small, profile_of, platform, tmp_path):
    """Docker is a stand-in that takes everything; the gateway has the images already."""
    (tmp_path / "profile.json").write_text(dump(profile_of(small.workflow)))
    (tmp_path / "platform.json").write_text(dump(platform))
    program(tmp_path / ".venv" / "bin" / "docker", 'echo "$@" >> "$HOME/docker"')
    with EmbeddedGateway() as gateway:
        named = {"OPENFAAS_URL": gateway.url, "OPENFAAS_PREFIX": REGISTRY}
        shell(
            f"chiron schedule {small.path} --slo 200ms; chiron generate plan.json;"
            "chiron build -f build/stack.yaml --backend process",
            **named,
        )
        shell(BY_HAND, **named)
        assert "joined" in shell("chiron invoke small < small/payload.json", **named)
    asked = (tmp_path / "docker").read_text()
    assert f"push {REGISTRY}/small-wrap1:latest" in asked

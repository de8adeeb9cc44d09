"""The commands of the README and of docs/cluster.md do what they say, on the embedded gateway."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.gateway.embedded import EmbeddedGateway
from chiron.workflow.documents import dump
from chiron.workflow.folder import WorkflowFolder

ROOT = Path(__file__).parents[2]
_BINARIES = Path(sys.executable).parent
FAAS_CLI = shutil.which("faas-cli") or shutil.which("faas-cli", path=str(_BINARIES))
README = (ROOT / "README.md").read_text()


def blocks(text: str, language: str) -> list[str]:
    """The code blocks of a document that are of `language`."""
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


(COMMANDS,) = blocks(README, "sh")
STEPS, BY_HAND = blocks((ROOT / "docs" / "cluster.md").read_text(), "sh")
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
    program(binaries / "chiron", f'exec {sys.executable} -m tests.brief_chiron "$@"')
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


@pytest.mark.parametrize("document", ["README.md", "CONTRIBUTING.md"])
def test_what_make_is_asked_for_is_in_the_makefile(document):
    targets = set(re.findall(r"(?:^|`)make ([a-z-]+)", (ROOT / document).read_text(), re.M))
    assert targets
    subprocess.run(["make", "--dry-run", *targets], cwd=ROOT, check=True, capture_output=True)


def hello(folder: Path) -> None:
    """Write the example of the README, all but the file that `chiron init` writes."""
    (stack,) = blocks(README, "yaml")
    handlers = zip(("greet", "shout"), blocks(README, "python"), strict=True)
    payload = re.search(r"`(\{.*?\})` in `hello/payload.json`", README)
    assert payload is not None
    folder.mkdir()
    (folder / "stack.yaml").write_text(stack)
    (folder / "payload.json").write_text(payload[1])
    for name, code in handlers:
        (folder / "functions" / name).mkdir(parents=True)
        (folder / "functions" / name / "handler.py").write_text(code)


def serving(gateway: int) -> str:
    """The lines that serve for as long as the shell runs, once the gateway is there."""
    ready = f"until (: </dev/tcp/127.0.0.1/{gateway}) 2>/dev/null; do kill -0 $!; sleep 0.1; done"
    return f"chiron serve --gateway-port {gateway} --port 0 & trap 'kill $!' EXIT; {ready}"


@pytest.mark.slow
@pytest.mark.strace
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("strace")
def test_the_commands_of_the_readme_run_its_example(shell, tmp_path):
    hello(tmp_path / "hello")
    gateway = free_port()
    lines = re.sub(r"\bDIR\b", "hello", re.sub(r"\bNAME\b", "hello", COMMANDS))
    before_undo, undo = lines.split("chiron remove")
    said = shell(
        f"{serving(gateway)}\n{before_undo}chiron logs hello\nchiron remove{undo}",
        OPENFAAS_URL=f"http://127.0.0.1:{gateway}",
    )
    answer, logged = blocks(README, "text")[0].splitlines()
    assert answer in said.splitlines()
    assert re.search(re.escape(logged).replace("1a2b3c4d", "[0-9a-f]{8}"), said)
    (written,) = blocks(README, "json")
    assert json.loads((tmp_path / "hello" / "workflow.json").read_text()) == json.loads(written)


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`chiron` of the wheel, in an environment that has nothing else but what it depends on."""
    wheels, environment = tmp_path_factory.mktemp("dist"), tmp_path_factory.mktemp("venv")
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check"]
    build = [*pip, "wheel", str(ROOT), "--no-deps", "--quiet", "--wheel-dir", str(wheels)]
    subprocess.run(build, check=True, timeout=300)
    venv = [sys.executable, "-m", "venv", "--without-pip", str(environment)]
    subprocess.run(venv, check=True, timeout=120)
    (packages,) = environment.glob("lib/python*/site-packages")
    # Without `site`, a folder on the path adds no editable installation of its own.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    python = environment / "bin" / "python"
    install = [*pip, "--python", str(python), "install", "--quiet", "--no-deps"]
    subprocess.run([*install, *wheels.glob("*.whl")], check=True, timeout=120)
    found = subprocess.check_output(
        [python, "-c", "import chiron; print(chiron.__file__)"], cwd=environment, text=True
    )
    assert Path(found.strip()).is_relative_to(environment)
    return environment / "bin" / "chiron"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_wheel_runs_the_example_of_the_readme(installed, home, profile_of, platform, tmp_path):
    folder = tmp_path / "hello"
    hello(folder)

    def chiron(*words: str) -> str:
        command = [str(installed), *words]
        output = subprocess.check_output(
            command, cwd=tmp_path, text=True, timeout=300, stderr=subprocess.STDOUT
        )
        return str(output)

    chiron("init", "hello")
    workflow = WorkflowFolder.open(folder).workflow
    (tmp_path / "profile.json").write_text(dump(profile_of(workflow)))
    (tmp_path / "platform.json").write_text(dump(platform))
    measured = ["--profile", "profile.json", "--platform", "platform.json"]
    said = chiron("deploy", "hello", "--slo", "10s", "--local", "--no-prove", *measured)
    assert "the SLO of 10000 ms is met" in said


@pytest.mark.slow
@needs_faas_cli
@pytest.mark.faas_cli
@pytest.mark.strace
@pytest.mark.timeout(900)
@pytest.mark.usefixtures("strace")
def test_step_by_step(shell, small):
    gateway = free_port()
    lines = re.sub(r"\bDIR\b", str(small.path), re.sub(r"\bNAME\b", "small", STEPS))
    lines = lines.replace("chiron serve &", serving(gateway))
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
    assert f"push {REGISTRY}/small-wrap1:" in asked

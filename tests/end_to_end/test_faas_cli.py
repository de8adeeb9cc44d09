"""The real faas-cli deploys, runs and removes what chiron generates."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chiron.gateway.embedded import EmbeddedGateway
from chiron.generator.generate import Sources, generate
from chiron.openfaas.client import Gateway
from chiron.openfaas.credentials import credentials_for
from chiron.scheduler.choices import Choices
from chiron.scheduler.schedule import schedule

PASSWORD = "se$cret {{ x }}"  # noqa: S105
FAAS_CLI = shutil.which("faas-cli") or shutil.which(
    "faas-cli", path=str(Path(sys.executable).parent)
)
CHIRON = [sys.executable, "-c", "from chiron.cli.main import main; main()"]
#: What faas-cli would expand, were it not escaped, as it has to stand in the user's stack.yaml.
TRICKY = "$HOME ${HOME} $$ \\"
ESCAPED = TRICKY.replace("\\", "\\\\").replace("$", "$$")
REQUEST = '{"from": "faas-cli ü"}'

pytestmark = [
    pytest.mark.slow,
    pytest.mark.faas_cli,
    pytest.mark.skipif(
        FAAS_CLI is None, reason="no faas-cli here: installation/faas-cli/install.sh builds it"
    ),
]
Run = Callable[..., str]


@pytest.fixture
def guarded(home: Path) -> Iterator[EmbeddedGateway]:
    """A gateway that asks for a password."""
    with EmbeddedGateway(user="admin", password=PASSWORD) as gateway:
        yield gateway


@pytest.fixture
def environment(guarded: EmbeddedGateway, home: Path, tmp_path: Path) -> dict[str, str]:
    return {
        "HOME": str(tmp_path),
        "OPENFAAS_CONFIG": str(tmp_path / "config"),
        "OPENFAAS_URL": guarded.url,
        "CHIRON_HOME": str(home),
        "PATH": os.environ["PATH"],
        "PYTHONPATH": str(Path(__file__).parents[2] / "src"),
    }


@pytest.fixture
def run(environment: dict[str, str], tmp_path: Path) -> Run:
    """Runs a command in the test's folder; returns what it printed on stdout and stderr."""

    def run(*command: str, stdin: str = "", status: int = 0) -> str:
        done = subprocess.run(
            command,
            input=stdin,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture
def faas(run: Run) -> Run:
    """Runs a verb of faas-cli as somebody who has logged in."""
    login = ("login", "--username", "admin", "--password-stdin")
    assert "credentials saved" in run(str(FAAS_CLI), *login, stdin=PASSWORD)
    return lambda *arguments, **options: run(str(FAAS_CLI), *arguments, **options)


@pytest.fixture
def sources(write_folder, tmp_path) -> Sources:
    """The small workflow with a secret, a line of log, and a variable to stumble over."""
    fields = {"join": {"secrets": ["join-key"], "environment": {"TRICKY": ESCAPED}}}
    folder = write_folder(tmp_path / "small", fields=fields)
    handler = folder.path / "functions" / "join" / "handler.py"
    handler.write_text('def handle(req):\n    print("to be joined:", req)\n    return req\n')
    return Sources.read(folder)


@pytest.fixture
def generated(sources, run, profile_of, platform, tmp_path) -> list[str]:
    """build/ of the small workflow, and its images; returns its functions, the entry first."""
    workflow = sources.folder.workflow
    plan = schedule(workflow, profile_of(workflow), platform, 50.0, Choices(planner="pgp"))
    generate(plan, sources, tmp_path / "build")
    said = run(*CHIRON, "build", "-f", "build/stack.yaml")
    assert "next: faas-cli deploy -f build/stack.yaml" in said
    return [wrap.name for wrap in plan.wraps]


def eventually(read: Callable[[], str]) -> str:
    """What `read` returns once that is not empty: logs take a moment to arrive."""
    end = time.monotonic() + 60
    while not (text := read()) and time.monotonic() < end:
        time.sleep(0.1)
    return text


def test_a_generated_stack_goes_through_all_verbs(faas, generated, sources, guarded, environment):
    entry = generated[0]
    assert "join-key" in faas("secret", "create", "join-key", "--from-literal", "v4lue")
    assert "join-key" in faas("secret", "list")
    for _ in ("created", "updated"):
        said = faas("deploy", "-f", "build/stack.yaml")
        assert said.count("Deployed. 202 Accepted.") == len(generated)
    assert f"{entry} is ready" in faas("ready", entry)
    expected = sources.reference(REQUEST.encode(), guarded.url).output
    assert faas("invoke", entry, stdin=REQUEST) == expected
    assert "submitted asynchronously" in faas("invoke", "--async", entry, stdin=REQUEST)
    listed = faas("list")
    assert [name for name in generated if name not in listed] == []
    described = faas("describe", entry)
    for shown in ("Ready", f"{entry}:", "chiron.workflow: small", "chiron.role: entry"):
        assert shown in described
    logged = eventually(lambda: faas("logs", entry, "--tail=false", "--since=1h"))
    assert "to be joined:" in logged
    with Gateway(guarded.url, credentials_for(guarded.url, environment)) as gateway:
        told = gateway.describe(entry)
    assert told.env_vars["TRICKY"] == TRICKY
    assert told.secrets == ("join-key",)
    assert told.requests == told.limits.model_copy(update={"cpu": "100m"})
    faas("remove", "-f", "build/stack.yaml")
    assert re.search(rf"\b{entry}\b", faas("list")) is None
    assert "No existing function to remove" in faas("remove", entry, status=1)
    faas("secret", "remove", "join-key")
    assert "join-key" not in faas("secret", "list")


def test_chiron_uses_the_login_of_faas_cli(faas, generated, run, sources, guarded):
    faas("secret", "create", "join-key", "--from-literal", "v4lue")
    faas("deploy", "-f", "build/stack.yaml")
    faas("ready", generated[0])
    expected = sources.reference(REQUEST.encode(), guarded.url).output
    said = run(*CHIRON, "invoke", "small", stdin=REQUEST)
    assert said.startswith(f"{expected}\n")


def test_a_wrong_password_is_refused_and_chiron_says_the_mend(run, guarded):
    login = ("login", "--username", "admin", "--password-stdin")
    run(str(FAAS_CLI), *login, stdin="wrong", status=1)
    said = run(*CHIRON, "invoke", "small", status=2)
    assert said.startswith("error: ")
    assert f"faas-cli login -g {guarded.url}" in said


def test_the_version_of_the_gateway_is_shown(faas):
    assert "chiron-embedded" in faas("version", "--warn-update=false")
    assert faas("version", "--short-version").strip()

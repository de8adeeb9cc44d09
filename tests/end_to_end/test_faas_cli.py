"""The real faas-cli deploys, runs and removes what chiron generates."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from chiron.evaluation.reference.sources import reference_run
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
    """The small workflow with a secret, and a variable to stumble over."""
    fields = {"join": {"secrets": ["join-key"], "environment": {"TRICKY": ESCAPED}}}
    return Sources.read(write_folder(tmp_path / "small", fields=fields))


@pytest.fixture
def generated(sources, run, profile_of, platform, tmp_path) -> list[str]:
    """build/ of the small workflow, and its images; returns its functions, the entry first."""
    workflow = sources.folder.workflow
    plan = schedule(workflow, profile_of(workflow), platform, 50.0, Choices(planner="pgp"))
    generate(plan, sources, tmp_path / "build")
    said = run(*CHIRON, "build", "-f", "build/stack.yaml")
    assert "next: faas-cli deploy -f build/stack.yaml" in said
    return [wrap.name for wrap in plan.wraps]


def test_what_chiron_generates_is_deployed_invoked_and_removed_as_written(
    faas, generated, sources, guarded, environment, run
):
    """What each verb does is in `tests/gateway`; commands of chiron use the login of faas-cli."""
    entry = generated[0]
    faas("secret", "create", "join-key", "--from-literal", "v4lue")
    said = faas("deploy", "-f", "build/stack.yaml")
    assert said.count("Deployed. 202 Accepted.") == len(generated)
    assert f"{entry} is ready" in faas("ready", entry)
    expected = reference_run(sources, REQUEST.encode(), guarded.url).output
    assert faas("invoke", entry, stdin=REQUEST) == expected
    described = faas("describe", entry)
    for shown in ("Ready", f"{entry}:", "chiron.workflow: small", "chiron.role: entry"):
        assert shown in described
    with Gateway(guarded.url, credentials_for(guarded.url, environment)) as gateway:
        told = gateway.describe(entry)
    assert told.env_vars["TRICKY"] == TRICKY
    assert told.secrets == ("join-key",)
    assert told.requests == told.limits.model_copy(update={"cpu": "100m"})
    assert run(*CHIRON, "invoke", "small", stdin=REQUEST).startswith(f"{expected}\n")
    faas("remove", "-f", "build/stack.yaml")
    assert re.search(rf"\b{entry}\b", faas("list")) is None

"""The real faas-cli works against the gateway, verb by verb."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chiron.gateway.embedded import EmbeddedGateway

TIMEOUT_S = 60
PASSWORD = "kept-here"  # noqa: S105
FAAS_CLI = shutil.which("faas-cli") or shutil.which(
    "faas-cli", path=str(Path(sys.executable).parent)
)

ECHO = """
    def handle(request):
        print("heard", request.body.decode())
        return request.body
"""

pytestmark = [
    pytest.mark.faas_cli,
    pytest.mark.skipif(
        FAAS_CLI is None,
        reason="no faas-cli here: installation/faas-cli/install.sh builds it",
    ),
]


@pytest.fixture
def guarded(store, make_image):
    """A gateway with a password and one image."""
    make_image("echo", ECHO)
    with EmbeddedGateway(images=store.root, user="admin", password=PASSWORD) as gateway:
        yield gateway


@pytest.fixture
def faas(guarded, tmp_path):
    """Run faas-cli with a home of its own; returns what it printed."""
    environment = {"HOME": str(tmp_path), "OPENFAAS_URL": guarded.url, "PATH": "/usr/bin:/bin"}

    def run(*arguments: str, stdin: str = "", status: int = 0) -> str:
        done = subprocess.run(
            [str(FAAS_CLI), *arguments],
            input=stdin,
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S,
            check=False,
        )
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run


@pytest.fixture
def stack(tmp_path) -> str:
    """A stack.yaml with the one function `echo`, and the template that faas-cli looks for."""
    template = tmp_path / "template" / "python3-flask"
    template.mkdir(parents=True)
    (template / "template.yml").write_text("language: python3\nfprocess: python index.py\n")
    path = tmp_path / "stack.yaml"
    path.write_text(
        "version: 1.0\n"
        "provider: {name: openfaas}\n"
        "functions:\n"
        "  echo: {lang: python3-flask, handler: ./echo, image: 'echo:latest', secrets: [key]}\n"
    )
    return str(path)


def test_every_verb_works(faas, stack):
    faas("login", "--username", "admin", "--password-stdin", stdin="wrong", status=1)
    assert "credentials saved" in faas(
        "login", "--username", "admin", "--password-stdin", stdin=PASSWORD
    )
    assert "chiron-embedded" in faas("version", "--warn-update=false")
    assert "openfaas-fn" in faas("namespaces")
    faas("secret", "create", "key", "--from-literal", "value")
    assert "key" in faas("secret", "list")
    for _ in ("created", "updated"):
        assert "Deployed. 202 Accepted." in faas("deploy", "-f", stack)
    assert "echo is ready" in faas("ready", "echo")
    assert faas("invoke", "echo", stdin="hello") == "hello"
    assert "submitted asynchronously" in faas("invoke", "--async", "echo", stdin="hello")
    assert "echo" in faas("list")
    described = faas("describe", "echo")
    assert "Ready" in described
    assert "echo:latest" in described
    assert "heard hello" in faas("logs", "echo", "--tail=false", "--lines=5", "--since=1h")
    assert "Removing" in faas("remove", "echo")
    assert "No existing function to remove" in faas("remove", "echo", status=1)
    faas("secret", "remove", "key")


def test_a_missing_image_is_printed_as_the_gateway_says_it(faas):
    faas("login", "--username", "admin", "--password-stdin", stdin=PASSWORD)
    printed = faas("deploy", "--name", "side", "--image", "never-built", status=1)
    assert "image never-built not found" in printed

"""Wraps without a gateway of their own find the supporting functions of one that is there."""

from __future__ import annotations

import os
import subprocess
from importlib.util import cache_from_source
from pathlib import Path
from types import SimpleNamespace
from urllib.parse import urlsplit

import pytest

from chiron.deployment.caller import Caller
from chiron.deployment.local_launcher import LocalLauncher, Ports, _assemble, _stop
from chiron.openfaas.client import Gateway
from chiron.openfaas.function_headers import function_headers

#: Headers that tell of the connection and the body.
_OF_ALL = {"host", "connection", "content-length"}

_ASKING = """\
import os
import urllib.request


def handle(req):
    url = os.environ["gateway_url"] + "/function/helper"
    with urllib.request.urlopen(url, data=req.encode(), timeout=60) as answer:
        return answer.read().decode()
"""


@pytest.fixture
def asking(write_folder, tmp_path):
    """A workflow whose function asks a supporting one."""
    functions = {"asking": _ASKING, "helper": "def handle(req):\n    return req\n"}
    return write_folder(tmp_path / "asking", {"tasks": {"a": "asking"}}, functions, {})


@pytest.fixture
def answer(asking, plan_of):
    """What the workflow answers on a local launcher, and what it says goes without."""

    def ask(gateway):
        said = []
        plan = plan_of(asking.workflow)
        with LocalLauncher(said.append, gateway).launch(asking.workflow, asking, plan) as running:
            return running.gateway.invoke(running.names[0], b"x"), said

    return ask


def test_what_a_gateway_runs_is_found_there(answer, behind, fake):
    behind.functions["helper"] = lambda body: (200, b"helped " + body)
    fake.url = behind.url
    fake.add("helper")
    reply, said = answer(fake)
    assert (reply.text, said) == ("helped x", [])


@pytest.mark.parametrize("there", [True, False])
def test_what_nobody_runs_is_said(there, answer, fake):
    reply, (line,) = answer(fake if there else None)
    assert reply.status_code >= 500
    assert "helper" in line
    assert ("on the gateway" in line) is there


def test_a_wraps_runtime_is_the_templates_and_compiled(tmp_path):
    """Else each wrap would copy it, or compile it as it starts."""
    (tmp_path / "code").mkdir()
    _assemble(tmp_path / "code", tmp_path / "image")
    assert (tmp_path / "image" / "wrap").is_symlink()
    modules = [*(tmp_path / "image" / "wrap").rglob("*.py")]
    assert modules and all(Path(cache_from_source(str(each))).is_file() for each in modules)


def test_what_is_compiled_of_java_is_not_written_into_the_template(tmp_path, monkeypatch):
    sources = tmp_path / "code" / "functions" / "one" / "function" / "src" / "main" / "java"
    sources.mkdir(parents=True)
    (sources / "Handler.java").write_text("public class Handler {}")

    def compile_there(*_, cwd, **__):
        (cwd / "wrap" / "functions" / "java" / ".chiron-classes").mkdir(exist_ok=True)
        return SimpleNamespace(returncode=0)

    monkeypatch.setattr("chiron.deployment.local_launcher.subprocess.run", compile_there)
    _assemble(tmp_path / "code", tmp_path / "image")
    java = tmp_path / "image" / "wrap" / "functions" / "java"
    assert (java / ".chiron-classes").is_dir()
    assert java.resolve().is_relative_to(tmp_path)


def test_whoever_asks_a_function_sends_it_the_same_headers(behind):
    behind.functions["tells"] = lambda _body: (200, b"told")
    port = urlsplit(behind.url).port
    behind.functions["/"] = behind.functions["tells"]

    Gateway(behind.url).invoke("tells", b"x")
    Ports("", {"tells": port}, {}).invoke("tells", b"x")
    with Caller(behind.url) as caller:
        caller.call("tells", b"x")

    sent = [
        {name.lower(): value for name, value in headers.items() if name.lower() not in _OF_ALL}
        for _, _, headers in behind.calls
    ]
    assert sent == [{name.lower(): value for name, value in function_headers(b"x").items()}] * 3


@pytest.mark.parametrize("command", [["true"], ["sleep", "600"]])
def test_the_process_group_is_killed_before_its_pid_is_free(command, monkeypatch):
    process = subprocess.Popen(command, start_new_session=True)
    is_ours = []
    monkeypatch.setattr(os, "killpg", lambda pid, _: is_ours.append(Path(f"/proc/{pid}").exists()))
    _stop(process)
    assert is_ours == [True]
    assert process.returncode is not None


_READING = """\
import os
from pathlib import Path


def handle(req):
    folder = Path(os.environ["secrets_dir"])
    listener = Path(os.environ["TMPDIR"], "pymp-12345678", "listener-12345678")
    found = [(each.name, each.read_bytes()) for each in folder.iterdir()]
    return f"{found} {len(str(listener))}"
"""


@pytest.fixture
def read(write_folder, tmp_path, plan_of, monkeypatch):
    """What a function with a long name reads of its secret, and what the launcher says."""
    name = "reads-a-secret-that-other-functions-do-not-have"
    fields = {name: {"secrets": ["key"]}}
    folder = write_folder(tmp_path / "f", {"tasks": {"a": name}}, {name: _READING}, {}, fields)
    monkeypatch.chdir(tmp_path)

    def read():
        said = []
        plan = plan_of(folder.workflow)
        with LocalLauncher(said.append).launch(folder.workflow, folder, plan) as running:
            return running.gateway.invoke(running.names[0], b"").text, said

    return read


def test_a_function_has_its_own_secrets_from_the_folder_of_faas_cli(read, tmp_path):
    (tmp_path / ".secrets").mkdir()
    (tmp_path / ".secrets" / "key").write_bytes(b"swordfish\r\n")
    (tmp_path / ".secrets" / "other").write_text("not its own")
    answer, said = read()
    secrets, _, length = answer.rpartition(" ")
    assert (secrets, said) == (r"[('key', b'swordfish\r\n')]", [])
    assert int(length) <= 107, "the path of a socket of multiprocessing has to fit"


def test_a_secret_without_a_value_is_said(read):
    answer, said = read()
    assert answer.startswith("[] ")
    assert said == ["without their secrets: key; put each value into .secrets/NAME here"]

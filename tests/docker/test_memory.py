"""An end by the memory limit is named as such, with what mends it, wherever it comes to pass."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.cli.place import BUILDERS
from chiron.deployment.launcher import Launcher
from chiron.openfaas.client import Gateway
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.plan import Plan

pytestmark = pytest.mark.slow

LIMIT_MIB = 128
#: Holds what it is asked for until it is seen: processes of the process backend are looked at.
GREEDY = """
import time

def handle(req):
    print("about to take", req, flush=True)
    block = bytearray(int(req) << 20)
    block[::4096] = b"x" * len(block[::4096])
    time.sleep(2 if len(block) > 100 << 20 else 0)
    return str(len(block))
"""
IMPORTER = """
import time

print("loading the model", flush=True)
MODEL = bytearray(300 << 20)
MODEL[::4096] = b"x" * len(MODEL[::4096])
time.sleep(2)

def handle(req):
    return "never"
"""
#: Loses a process that it has started itself, and says nothing of why.
CALLER = """
import subprocess, sys

HOG = "import time; hog = bytearray(300 << 20); hog[::4096] = b'x' * (300 << 8); time.sleep(2)"

def handle(req):
    subprocess.run([sys.executable, "-c", HOG], check=True)
    return "never"
"""


@pytest.fixture
def deployed(write_folder, embedded, backend, tmp_path, monkeypatch):
    """Runs one request on a workflow of `code` beside a modest function; returns the error."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)

    def failure(code: str, request: bytes, mechanism: str = "fork", *, main: bool) -> ChironError:
        folder: WorkflowFolder = write_folder(
            tmp_path / "hungry",
            {"name": "hungry", "tasks": {"a": "greedy", "b": "modest"}, "edges": []},
            {"greedy": code, "modest": "def handle(req):\n    return req\n"},
        )
        processes = [["a"], ["b"]] if main else [["b"], ["a"]]
        wrap = {
            "name": "hungry-wrap1",
            "cpus": 1,
            "memory_mib": LIMIT_MIB,
            "mechanism": mechanism,
            "processes": processes,
        }
        plan = {"format": 2, "workflow": "hungry", "planner": "pgp"}
        made = Plan.model_validate_json(json.dumps(plan | {"wraps": [wrap], "cpus": 1}))
        with pytest.raises(ChironError) as raised, Gateway(embedded.url) as gateway:
            launcher = Launcher(gateway, BUILDERS[backend])
            with launcher.launch(folder.workflow, folder, made) as deployment:
                deployment.invoke(b"1")
                deployment.invoke(request)
        return raised.value

    return failure


def check_message(message: str) -> None:
    """It has the wrap, the limit, the functions, the mend, and a file with the whole log."""
    assert f"memory limit of {LIMIT_MIB} MiB" in message
    assert "hungry-wrap1 runs greedy, modest: give " in message
    assert "more memory in stack.yaml, such as limits: {memory: " in message
    proposed = re.search(r"memory: (\d+)Mi", message)
    assert proposed and int(proposed[1]) >= 2 * LIMIT_MIB


def whole_log(message: str) -> str:
    found = re.search(r"what was printed is in (\S+)", message)
    assert found
    return Path(found[1]).read_text()


@pytest.mark.parametrize(("mechanism", "main"), [("fork", True), ("pool", False)])
def test_a_handler_that_takes_more_than_the_limit(mechanism, main, deployed: Callable):
    error = deployed(GREEDY, b"300", mechanism, main=main)
    check_message(error.message)
    assert "its log ends: " in error.message
    printed = r"\[greedy [0-9a-f]{8}\] about to take 300"
    assert re.search(printed, error.message)
    assert re.search(printed, whole_log(error.message))


def test_imports_that_take_more_than_the_limit_are_told_of_at_once(deployed: Callable):
    error = deployed(IMPORTER, b"1", main=True)
    assert error.code == "not-ready"
    assert " after 60 s" not in error.message
    check_message(error.message)
    assert "[greedy] loading the model" in whole_log(error.message)


def test_a_process_that_a_handler_has_started(deployed: Callable):
    error = deployed(CALLER, b"1", main=False)
    check_message(error.message)

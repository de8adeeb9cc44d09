"""Whole workflows profiled on the embedded gateway, with real strace."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from chiron.deployment.launcher import Launcher
from chiron.profiler.profile import profile
from chiron.workflow.belonging import require_own
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.profile import FunctionProfile

MakeFolder = Callable[..., WorkflowFolder]

pytestmark = pytest.mark.usefixtures("briefly_profiled")
SLAPP = Path(__file__).resolve().parents[2] / "benchmarks" / "slapp"


def main_kind(function: FunctionProfile) -> str:
    """What it does for most of its time; how exactly, `chiron evaluate profiler` tells."""
    return max(("cpu", "native", "block"), key=function.time_ms)


def tracers() -> list[psutil.Process]:
    found = []
    for process in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # it has ended meanwhile
            if process.name() == "strace":
                found.append(process)
    return found


@pytest.mark.slow
@pytest.mark.strace
@pytest.mark.quiet
def test_slapp_shows_who_computes_and_who_waits_and_leaves_nothing(
    launcher: Launcher, strace: str
) -> None:
    said: list[str] = []
    found = profile(WorkflowFolder.open(SLAPP), launcher, samples=4, progress=said.append)
    functions = found.functions
    assert (found.workflow, list(functions)) == (
        "slapp",
        ["network-io", "factorial", "disk-io", "fibonacci", "pi", "pbkdf2"],
    )
    # connect is over at once on loopback: that strace's waits have it, test_tracer.py shows.
    longest = max(functions["network-io"].periods, key=lambda period: period.duration_ms)
    assert (longest.kind, longest.syscall) == ("block", "poll")
    assert {"fsync"} <= {p.syscall for p in functions["disk-io"].periods}
    # How much of disk-io waits is the disk's matter, and a virtual disk can be as fast as memory.
    assert {name: main_kind(each) for name, each in functions.items() if name != "disk-io"} == {
        "network-io": "block",
        "factorial": "cpu",
        "fibonacci": "cpu",
        "pi": "cpu",
        "pbkdf2": "native",
    }, functions
    for function in functions.values():
        assert function.samples >= 4  # more where it varies
        assert function.spread_ms is not None
        assert function.spread_ms[0] <= function.latency_ms <= function.spread_ms[1]
        assert function.runtime.startswith("python3.")
        assert function.output_bytes > 90
        assert function.sources == ("probe", "strace")
        assert function.forked_ms is not None and function.forked_ms > 0
    assert "profiled pi" in said
    assert launcher.gateway.functions() == []
    assert tracers() == []


@pytest.mark.strace
def test_a_function_that_fails_is_named_and_nothing_is_left(
    launcher: Launcher, strace: str, write_folder: MakeFolder, tmp_path: Path
) -> None:
    fails_deployed = (
        "import os\n\n\ndef handle(req):\n"
        '    if "OPENFAAS_NAME" in os.environ:\n        open("/var/openfaas/secrets/cheese")\n'
        "    return req\n"
    )
    folder = write_folder(
        tmp_path,
        {"tasks": {"a": "sound", "b": "faulty"}, "edges": []},
        functions={"sound": "def handle(req):\n    return req\n", "faulty": fails_deployed},
    )
    with pytest.raises(ChironError, match=r"faulty failed .*cheese.*; .*secrets_dir") as caught:
        profile(folder, launcher, samples=4)
    assert (caught.value.code, caught.value.functions) == ("function-failed", ("faulty",))
    assert launcher.gateway.functions() == []
    assert tracers() == []


FAILS_LATE = """\
import time


def handle(req):
    time.sleep(0.05)
    raise ValueError('no')
"""


SELDOM = """\
import os
import random


def handle(req):
    os.chdir("/")
    random.seed(1)
    return req
"""


@pytest.mark.strace
def test_of_functions_that_only_fail_or_are_not_reached_it_is_known_what_can_be(
    launcher: Launcher, strace: str, write_folder: MakeFolder, tmp_path: Path
) -> None:
    caught = [{"ErrorEquals": ["States.ALL"], "Next": "Instead"}]
    states = {
        "Tried": {"Type": "Task", "Resource": "faulty", "Catch": caught, "Next": "Done"},
        "Done": {"Type": "Task", "Resource": "seldom", "End": True},
        "Instead": {"Type": "Pass", "Result": "instead", "End": True},
    }
    folder = write_folder(
        tmp_path,
        {"StartAt": "Tried", "States": states},
        functions={"faulty": FAILS_LATE, "seldom": SELDOM},
    )
    found = profile(folder, launcher, samples=4)
    faulty = found.functions["faulty"]
    assert faulty.sources == ("probe", "strace")
    # The probe sees the whole sleep, strace a little less.
    assert 45 <= faulty.time_ms("block") <= faulty.latency_ms
    assert faulty.forked_ms is not None and faulty.unforkable == ""
    seldom = found.functions["seldom"]
    assert seldom.unshareable == ("os.chdir", "random.seed")
    assert (seldom.idle_mib or 0) > 10
    require_own(found, folder.workflow, "the profile")
    (line,) = (each for each in found.warnings if each.startswith("function "))
    assert "seldom is not run with any payload" in line


ANYBODYS = """\
import time
import uuid

import inflection


def handle(req):
    with open("function/data.txt") as data:
        word = inflection.pluralize(data.read().strip())
    return {"word": word, "at": time.time_ns(), "id": str(uuid.uuid4())}
"""


@pytest.mark.slow
@pytest.mark.strace
def test_functions_run_with_their_requirements_and_files_and_may_answer_what_varies(
    launcher: Launcher, strace: str, write_folder: MakeFolder, tmp_path: Path
) -> None:
    wanted = [sys.executable, "-m", "pip", "download", "--no-deps", "-qd", str(tmp_path / "wheels")]
    if subprocess.run([*wanted, "inflection"], check=False, capture_output=True).returncode:
        pytest.skip("pip cannot have the package inflection here")
    workflow = {"tasks": {"a": "any", "b": "any", "c": "sound"}, "edges": [["c", "b"]]}
    functions = {"any": ANYBODYS, "sound": "def handle(req):\n    return req\n"}
    files = {"any": {"requirements.txt": "inflection\n", "data.txt": "ox\n"}}
    folder = write_folder(tmp_path / "flow", workflow, functions, files)

    found = profile(folder, launcher, samples=4)

    assert found.functions["any"].requirements == ("inflection",)
    assert found.functions["any"].idle_mib > 20
    answer = found.answer_to(folder.payloads()[0].content)
    assert answer is not None and found.answer_to(b"another") is None
    assert answer.varies == ("$[*].at", "$[*].id")
    assert [item["word"] for item in json.loads(answer.output)] == ["oxen", "oxen"]

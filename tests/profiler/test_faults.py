"""Functions that fail in every way: they are named, nothing is left, the others are profiled."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from generator.harness import Harness
from profiler.profile import IncompleteProfileError, profile
from workflow.errors import ChironError
from workflow.folder import WorkflowFolder

MakeFolder = Callable[..., WorkflowFolder]

SOUND = "def handle(req):\n    return req\n"
DEPLOYED = 'import os, sys, time\n\nWRAPPED = "OPENFAAS_NAME" in os.environ\n\n'
TRACED = (
    "def traced():\n"
    '    with open("/proc/self/status") as status:\n'
    '        return "TracerPid:\\t0\\n" not in status.read()\n\n'
)

FAULTS = {
    "raises": ("def handle(req):\n    raise ValueError('out of cheese')\n", "out of cheese"),
    "raises-deployed": (
        "def handle(req):\n    if WRAPPED:\n        raise ValueError('cold')\n    return req\n",
        "cold",
    ),
    "never-returns": ("def handle(req):\n    time.sleep(1000)\n", "did not answer in time"),
    "exits": ("def handle(req):\n    sys.exit(3)\n", r"sys.exit\(3\)"),
    "dies-under-trace": (
        "import ctypes\n\ndef handle(req):\n    if WRAPPED and traced():\n"
        "        ctypes.string_at(0)\n    return req\n",
        "does not answer",
    ),
}


def running() -> set[int]:
    children = psutil.Process().children()
    return {p.pid for p in children if p.status() != psutil.STATUS_ZOMBIE}


@pytest.fixture(autouse=True)
def nothing_is_left() -> Iterator[None]:
    before = running()
    yield
    assert running() <= before


@pytest.mark.strace
@pytest.mark.parametrize("fault", FAULTS)
def test_a_faulty_function_is_named_and_the_others_are_profiled(
    fault: str, strace: str, write_folder: MakeFolder, tmp_path: Path
) -> None:
    code, said = FAULTS[fault]
    folder = write_folder(
        tmp_path,
        {"tasks": {"a": "sound", "b": "faulty", "c": "after"}, "edges": [["b", "c"]]},
        functions={"sound": SOUND, "faulty": DEPLOYED + TRACED + code, "after": SOUND},
        fields={"faulty": {"environment": {"exec_timeout": "5s"}}},
    )
    with pytest.raises(IncompleteProfileError, match=r"function faulty.*" + said) as caught:
        profile(folder, Harness(str), samples=4)
    profiled = set(caught.value.profile.functions)
    assert "sound" in profiled
    assert "faulty" in caught.value.functions
    assert profiled | set(caught.value.functions) == {"sound", "faulty", "after"}


@pytest.mark.strace
def test_a_function_may_print_10_mb(strace: str, write_folder: MakeFolder, tmp_path: Path) -> None:
    code = "def handle(req):\n    print('x' * 10_000_000)\n    return req\n"
    folder = write_folder(tmp_path, {"tasks": {"a": "loud"}, "edges": []}, functions={"loud": code})
    loud = profile(folder, Harness(str), samples=4).functions["loud"]
    assert loud.latency_ms > 0


def test_a_missing_module_is_said_with_the_wraps_name(
    write_folder: MakeFolder, tmp_path: Path, strace: str
) -> None:
    folder = write_folder(
        tmp_path,
        {"tasks": {"a": "needy"}, "edges": []},
        functions={"needy": "import no_such_module\n\n\n" + SOUND},
    )
    with pytest.raises(ChironError, match=r"needy.*no_such_module"):
        profile(folder, Harness(str), samples=4)


def test_without_strace_the_harness_profiles_by_the_probe_alone(
    write_folder: MakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = "import time\n\n\ndef handle(req):\n    time.sleep(0.02)\n    return req\n"
    folder = write_folder(tmp_path, {"tasks": {"a": "nap"}, "edges": []}, functions={"nap": code})
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    monkeypatch.setenv("PATH", os.fspath(nowhere))
    said: list[str] = []
    nap = profile(
        folder, Harness(said.append), samples=8, progress=said.append, probe_alone=True
    ).functions["nap"]
    assert nap.sources == ("probe",)
    assert nap.time_ms("block") / nap.latency_ms > 0.5
    assert max(nap.periods, key=lambda p: p.duration_ms).syscall == "clock_nanosleep"
    assert any("strace" in line and "install" in line for line in said)

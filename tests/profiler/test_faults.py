"""Functions that fail in every way: they are named, nothing is left, the others are profiled."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.profile import IncompleteProfileError, profile
from chiron.workflow.folder import WorkflowFolder

MakeFolder = Callable[..., WorkflowFolder]

pytestmark = pytest.mark.usefixtures("briefly_profiled")

SOUND = "def handle(req):\n    return req\n"
DEPLOYED = 'import os, sys, time\n\nWRAPPED = "OPENFAAS_NAME" in os.environ\n\n'
TRACED = (
    "def traced():\n"
    '    with open("/proc/self/status") as status:\n'
    '        return "TracerPid:\\t0\\n" not in status.read()\n\n'
)

FAULTS = {
    "raises": (
        "def handle(req):\n    raise ValueError('out of cheese')\n",
        r"out of cheese \(handler\.py:10\); in run 1 of 3 of the workflow with \S+; correct .*; "
        r"its input was \{\"answer\": 4\.20\}",
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
@pytest.mark.parametrize(
    "fault",
    [pytest.param(fault, marks=() if fault == "raises" else pytest.mark.slow) for fault in FAULTS],
)
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
        profile(folder, LocalLauncher(str), samples=4)
    profiled = set(caught.value.profile.functions)
    assert "sound" in profiled
    assert "faulty" in caught.value.functions
    assert profiled | set(caught.value.functions) == {"sound", "faulty", "after"}


@pytest.mark.strace
def test_a_function_may_print_2_mb(strace: str, write_folder: MakeFolder, tmp_path: Path) -> None:
    code = "def handle(req):\n    print('x' * 2_000_000)\n    return req\n"
    folder = write_folder(tmp_path, {"tasks": {"a": "loud"}, "edges": []}, functions={"loud": code})
    loud = profile(folder, LocalLauncher(str), samples=4).functions["loud"]
    assert loud.latency_ms > 0


NAP = """
import os, time, urllib.request
os.environ["REGION"] = "x"
urllib.request.urlopen = print

def handle(req):
    getattr(os, "umask")(0o77)  # as code that nothing but a run shows
    time.sleep(0.02)
    return req
"""


def test_without_strace_the_local_launcher_profiles_by_the_probe_alone(
    write_folder: MakeFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_folder(tmp_path, {"tasks": {"a": "nap"}, "edges": []}, functions={"nap": NAP})
    nowhere = tmp_path / "nowhere"
    nowhere.mkdir()
    monkeypatch.setenv("PATH", os.fspath(nowhere))
    monkeypatch.setattr("chiron.profiler.profile.others_share", lambda _: 0.62)
    said: list[str] = []
    found = profile(
        folder, LocalLauncher(said.append), samples=8, progress=said.append, probe_alone=True
    )
    nap = found.functions["nap"]
    assert nap.sources == ("probe",)
    assert nap.time_ms("block") / nap.latency_ms > 0.5
    assert max(nap.periods, key=lambda p: p.duration_ms).syscall == "clock_nanosleep"
    assert nap.unshareable == ("os.umask",)
    assert nap.set_at_import == ("os.environ['REGION']",)
    assert nap.patched_at_import == ("urllib.request.urlopen",)
    assert any("strace" in line and "install" in line for line in said)
    (busy,) = found.warnings
    assert "62% of the cores" in busy and f"warning: {busy}" in said


@pytest.mark.slow
@pytest.mark.quiet
def test_what_a_command_computes_and_takes_is_its_functions_and_what_a_wrap_keeps_the_runs(
    write_folder, tmp_path
):
    """A command's memory and CPU time, none of which holds the GIL, are of its process."""
    script = "x = b'x' * (100 << 20)\nfor _ in range(500_000): pass\n"
    command = {"lang": "command", "fprocess": f"{sys.executable} -S large.py"}
    keeps = "def handle(req):\n    return str(len((req + 'x') * (20 << 20)))\n"
    functions = {"large": "import multiprocessing", "keeps": keeps, "sound": SOUND}
    folder = write_folder(
        tmp_path / "flow",
        {"tasks": {name[0]: name for name in functions}, "edges": []},
        functions,
        {"large": {"large.py": script}},
        {"large": command},
    )
    (folder.path / "payload.json").write_text("")
    found = profile(folder, LocalLauncher(str), samples=4, probe_alone=True).functions
    large, keeping, sound = (found[name] for name in functions)
    assert 100 < large.memory_mib < 130
    assert large.time_ms("native") > 2 * large.time_ms("cpu")
    assert large.unshareable == ()
    assert 18 < keeping.memory_mib < 30
    assert sound.memory_mib < 3
    assert abs(keeping.idle_mib - sound.idle_mib) < 8

"""Functions alone in wraps: what cannot be started is left out."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.profile import IncompleteProfileError, profile
from chiron.profiler.solo import alone, alone_under_strace
from chiron.profiler.tracer import Launched
from chiron.workflow.errors import ChironError
from chiron.workflow.folder import WorkflowFolder

MakeFolder = Callable[..., WorkflowFolder]

NAP = "import time\n\n\ndef handle(req):\n    time.sleep(0.02)\n    return req\n"
NEEDY = "import no_such_module\n\n\ndef handle(req):\n    return req\n"


@pytest.fixture
def naps(write_folder: MakeFolder, tmp_path: Path) -> WorkflowFolder:
    """Two functions, one of which cannot be imported."""
    return write_folder(
        tmp_path / "naps",
        {"tasks": {"a": "nap", "b": "needy"}, "edges": []},
        functions={"nap": NAP, "needy": NEEDY},
    )


def test_a_function_that_cannot_be_imported_does_not_keep_the_others(
    naps: WorkflowFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", os.devnull)  # no strace: the probe will do
    with pytest.raises(IncompleteProfileError, match=r"function needy .*no_such_module") as caught:
        profile(naps, LocalLauncher(str), samples=2, probe_alone=True)
    assert set(caught.value.profile.functions) == {"nap"}
    assert caught.value.functions == ("needy",)


def test_an_error_that_blames_no_wrap_is_nobodys_failure(naps: WorkflowFolder) -> None:
    def launch(*_: object) -> None:
        raise ChironError("no-gateway", "there is none")

    failures: dict[str, ChironError] = {}
    with pytest.raises(ChironError, match="there is none"), alone(launch, naps, failures):
        raise AssertionError("runs")
    assert failures == {}


@pytest.mark.strace
def test_a_wrap_launched_under_strace_shows_its_runs_one_by_one(
    naps: WorkflowFolder, strace: str
) -> None:
    failures: dict[str, ChironError] = {}
    with alone_under_strace(strace, LocalLauncher(str), naps, failures) as (running, outputs):
        tracer = Launched(running.solo("nap", [b"{}"]), outputs["nap"])
        seen = tracer.runs(range(3))
    assert set(failures) == {"needy"}
    assert len(seen) == 3
    for one in seen:
        assert one.duration_ms >= 20
        assert "clock_nanosleep" in {call.name for call in one.strands[0].calls}

"""A warning about a deployed workflow is told once, not at each call."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from chiron.cli.list import command
from chiron.cli.place import Place
from chiron.cli.told import untold
from chiron.deployment.deployed import DeployedWorkflow, Deployments
from chiron.generator.annotations import DeployedPrediction

PLACE = "http://127.0.0.1:8080 finra"


def test_a_line_is_told_once_of_a_workflow(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    assert untold(PLACE, ["busy", "old", "busy"], folder) == ["busy", "old"]
    assert untold(PLACE, ["busy", "old"], folder) == []
    assert untold(PLACE, ["busy", "new"], folder) == ["new"]
    assert untold("http://127.0.0.1:8080 slapp", ["busy"], folder) == ["busy"]


def test_what_cannot_be_remembered_is_told_again(tmp_path: Path) -> None:
    folder = tmp_path / "file"
    folder.touch()
    assert [untold(PLACE, ["busy"], folder) for _ in range(2)] == [["busy"], ["busy"]]


def test_of_many_lines_the_newest_are_remembered(tmp_path: Path) -> None:
    for number in range(1001):
        assert untold(PLACE, [str(number)], tmp_path) == [str(number)]
    assert untold(PLACE, ["0", "1", "1000"], tmp_path) == ["0"]
    assert [file.name for file in tmp_path.iterdir()] == ["told"]


def test_a_line_about_several_workflows_is_printed_once_and_then_no_more(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    predicted = DeployedPrediction(
        cpus=1, latency_ms=5.0, low_ms=4.0, high_ms=6.0, warnings=("busy when calibrated",)
    )
    found = Deployments(
        deployments=tuple(
            DeployedWorkflow(
                workflow=name,
                planner="pgp",
                functions=(f"{name}-wrap1",),
                predicted=predicted,
                replicas=1,
                available=1,
                calls=0.0,
            )
            for name in ("finra", "slapp")
        )
    )
    launcher = SimpleNamespace(gateway=SimpleNamespace(url="http://127.0.0.1:8080"))
    monkeypatch.setenv("CHIRON_HOME", str(tmp_path))
    monkeypatch.setattr(Place, "connect", lambda _: nullcontext(launcher))
    monkeypatch.setattr("chiron.cli.list.deployed", lambda _: found)
    first, second = (CliRunner().invoke(command, []).output for _ in range(2))
    assert (first.count("busy when calibrated"), second.count("busy when calibrated")) == (1, 0)

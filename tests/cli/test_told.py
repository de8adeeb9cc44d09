"""A warning about a deployed workflow is told once, not at each call."""

from __future__ import annotations

from pathlib import Path

from chiron.cli.told import untold

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

"""What a function changes of its process is found, and the plan gives it a process of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from neighbours import CHANGING, CHANGING_AT_IMPORT, KEEPING

from chiron.deployment.local_launcher import LocalLauncher
from chiron.profiler.profile import profile
from chiron.scheduler.schedule import schedule
from chiron.workflow.plan import Plan

_ALL = {**CHANGING, **CHANGING_AT_IMPORT, **KEEPING}
#: So many workflows have them. One is for every day.
_PARTS = 8


def _chosen(functions: dict[str, tuple[str, str]]) -> Iterator[Any]:
    for number, (name, (line, _)) in enumerate(functions.items()):
        part = number % _PARTS
        marks = [pytest.mark.slow] if part else []
        yield pytest.param(part, name, marks=marks, id=f"{name}-{line}")


@pytest.fixture(scope="module")
def plan(
    request: pytest.FixtureRequest,
    write_folder: Any,
    platform: Any,
    tmp_path_factory: pytest.TempPathFactory,
) -> Plan:
    """The plan that the functions of a part have by default."""
    groups = (CHANGING, CHANGING_AT_IMPORT, KEEPING)
    names = [name for group in groups for name in list(group)[request.param :: _PARTS]]
    return _planned(write_folder, platform, tmp_path_factory.mktemp("neighbours"), names)


def _planned(write_folder: Any, platform: Any, path: Path, names: list[str]) -> Plan:
    folder = write_folder(
        path,
        {"tasks": {name: name for name in names}, "edges": []},
        {name: _ALL[name][1] for name in names},
        {},
    )
    measured = profile(folder, LocalLauncher(str), samples=4, probe_alone=True)
    return schedule(folder.workflow, measured, platform, 60_000.0)


def _beside(plan: Plan, name: str) -> set[str]:
    """The tasks of the process that has the task `name`."""
    (found,) = [
        set(process) for wrap in plan.wraps for process in wrap.processes if name in process
    ]
    return found


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("plan", "name"), list(_chosen(CHANGING)), indirect=["plan"], scope="module"
)
def test_what_changes_its_process_has_a_process_of_its_own(plan: Plan, name: str) -> None:
    assert _beside(plan, name) == {name}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("plan", "name"), list(_chosen(CHANGING_AT_IMPORT)), indirect=["plan"], scope="module"
)
def test_what_changes_its_process_while_it_is_imported_has_a_process_of_its_own(
    plan: Plan, name: str
) -> None:
    assert _beside(plan, name) == {name}


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "plan",
    [pytest.param(n, marks=[pytest.mark.slow] if n else []) for n in range(_PARTS)],
    indirect=True,
)
def test_what_changes_nothing_stays_together(plan: Plan) -> None:
    names = [name for name in KEEPING if any(name in wrap.tasks for wrap in plan.wraps)]
    assert len(names) > 1
    assert set(names) <= _beside(plan, names[0])

"""What a function changes of its process is found, and the plan gives it a process of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from neighbours import CHANGING, CHANGING_AT_IMPORT, KEEPING

from chiron.profiler.shared_resources import unshareable
from chiron.scheduler.schedule import schedule
from chiron.workflow.plan import Plan
from tests.templates.changes import changes_of

_GROUPS = (CHANGING, CHANGING_AT_IMPORT, KEEPING)
_CODE = {name: code for group in _GROUPS for name, (_, code) in group.items()}
#: So many workflows have them.
_PARTS = 8


def _beside(plan: Plan, name: str) -> set[str]:
    """The other tasks of the process that has the task `name`."""
    (found,) = [
        set(process) for wrap in plan.wraps for process in wrap.processes if name in process
    ]
    return found - {name}


def _are_apart(plan: Plan) -> None:
    """What changes its process is alone there, and what changes nothing stays together."""
    tasks = {task for wrap in plan.wraps for task in wrap.tasks}
    keeping = tasks & KEEPING.keys()
    assert len(keeping) > 1
    expected = {name: keeping - {name} if name in keeping else set() for name in tasks}
    assert {name: _beside(plan, name) for name in tasks} == expected


@pytest.mark.slow
def test_what_changes_its_process_has_a_process_of_its_own(
    write_folder: Any, profile_of: Any, platform: Any, tmp_path: Path
) -> None:
    changes = changes_of({name: {"handler.py": code} for name, code in _CODE.items()}, tmp_path)
    for part in range(_PARTS):
        names = [name for group in _GROUPS for name in list(group)[part::_PARTS]]
        tasks = {"tasks": {name: name for name in names}, "edges": []}
        folder = write_folder(
            tmp_path / f"part{part}", tasks, {name: _CODE[name] for name in names}, {}
        )
        known = profile_of(folder.workflow)
        functions = {}
        for name, function in known.functions.items():
            in_runs, at_import, everywhere = changes[name]
            found = {
                "unshareable": (*in_runs, *unshareable(tmp_path / name)),
                "set_at_import": tuple(at_import),
                "patched_at_import": tuple(everywhere),
            }
            functions[name] = function.model_copy(update=found)
        known = known.model_copy(update={"functions": functions})
        _are_apart(schedule(folder.workflow, known, platform, 60_000.0))

"""The plans that calibration deploys: no-op functions as threads, processes and remote wraps.

Two plans of a kind differ in one size only, so that the difference of their latencies is one
constant.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from pathlib import Path

from profiler import noop_handler
from workflow.folder import WorkflowFolder
from workflow.model import Task, Workflow
from workflow.plan import Mechanism, Plan, Wrap, WrapStage

FUNCTION = "noop"
_MEMORY_MIB = 256
_STACK = f"""version: 1.0
provider:
  name: openfaas
functions:
  {FUNCTION}:
    lang: python3-flask
    handler: ./functions/{FUNCTION}
    image: chiron-{FUNCTION}:latest
"""

#: Threads, processes and remote wraps of the larger plan of each kind.
THREADS, PROCESSES, REMOTES = 8, 5, 3


@dataclass(frozen=True)
class Shape:
    """A workflow of no-ops that all run at once, and the plan that it is deployed as."""

    name: str
    workflow: Workflow
    plan: Plan


def shapes() -> list[Shape]:
    """All plans; the first wrap of ``one`` answers the interpreter's constants too."""
    return [
        shape("one", [[1]], "fork"),
        shape("threads", [[THREADS]], "fork"),
        shape("fork-few", [[1] * 2], "fork"),
        shape("fork-many", [[1] * PROCESSES], "fork"),
        shape("pool-few", [[1] * 2], "pool"),
        shape("pool-many", [[1] * PROCESSES], "pool"),
        shape("remote-few", [[1]] * 2, "fork"),
        shape("remote-many", [[1]] * (1 + REMOTES), "fork"),
    ]


def shape(name: str, sizes: Sequence[Sequence[int]], mechanism: Mechanism) -> Shape:
    """One stage of no-ops: ``sizes`` has the number of threads for each process of each wrap."""
    workflow_name = f"chiron-calibrate-{name}"
    numbers = count()
    wraps = tuple(
        Wrap(
            name=f"{workflow_name}-wrap{index}",
            cpus=len(processes),
            memory_mib=_MEMORY_MIB,
            stages=(WrapStage(stage=0, processes=tuple(_processes(processes, numbers))),),
        )
        for index, processes in enumerate(sizes, start=1)
    )
    tasks = tuple(task for wrap in wraps for task in wrap.tasks)
    plan = Plan(
        format=1,
        workflow=workflow_name,
        model="pgp",
        mechanism=mechanism,
        wraps=wraps,
        cpus=sum(wrap.cpus for wrap in wraps),
    )
    workflow = Workflow(workflow_name, tuple(Task(t, FUNCTION, None) for t in tasks), tasks)
    return Shape(name, workflow, plan)


def write_folder(path: Path) -> WorkflowFolder:
    """A workflow folder at `path` with the no-op function."""
    code = path / "functions" / FUNCTION
    code.mkdir(parents=True)
    shutil.copy(Path(noop_handler.__file__), code / "handler.py")
    (path / "stack.yaml").write_text(_STACK, encoding="utf-8")
    return WorkflowFolder(path, shapes()[0].workflow)


def _processes(sizes: Sequence[int], numbers: Iterator[int]) -> Iterator[tuple[str, ...]]:
    for size in sizes:
        yield tuple(f"t{next(numbers)}" for _ in range(size))

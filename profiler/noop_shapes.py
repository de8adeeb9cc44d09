"""The plans that calibration deploys: no-op functions as threads, processes and remote wraps.

Two plans of a kind differ in one size only. So the difference of their latencies is one constant.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import count
from pathlib import Path

from chiron.predictor.mechanisms import DEFAULT_MECHANISM, EVERYWHERE, MECHANISMS, mechanisms_with
from chiron.profiler import noop_handler
from chiron.scheduler.layout import over_stages
from chiron.workflow.asl import parse_states
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap

#: The request for no-ops that do nothing.
_NOTHING = b"[[], []]"
#: Two functions with the same code, which requests can ask for different work.
FUNCTIONS = ("noop", "noop-second")
_MEMORY_MIB = 256
_STACK = """version: 1.0
provider:
  name: openfaas
functions:
"""
_STACK_FUNCTION = """  {name}:
    lang: python3-flask
    handler: ./functions/{name}
    image: chiron-{name}:latest
"""

#: Threads, processes, remote wraps and stages in the larger plan of each kind.
THREADS, PROCESSES, REMOTES, STAGES = 8, 5, 3, 4
#: Threads, or stages, of plans of idle no-ops: with fewer, noise would dominate the slope.
NUMEROUS = 33
#: Processes that compute in parallel, each with a core, and the threads of each.
CROWD_PROCESSES, CROWD_THREADS = 2, 4
#: The chains of each of two processes.
CHAINS = 2
#: The mechanism with running processes, so that no start is measured.
LASTING = next(name for name, mechanism in MECHANISMS.items() if mechanism.lasting)
_OLDEST = min(each.python for each in MECHANISMS.values())


@dataclass(frozen=True)
class Shape:
    """A workflow of no-ops, its plan, and the request to do nothing.

    If the request determines the number of no-ops, ``single`` is the request for one no-op.
    """

    name: str
    workflow: Workflow
    plan: Plan
    request: bytes = _NOTHING
    single: bytes | None = None


def shapes(python: tuple[float, ...] = _OLDEST) -> list[Shape]:
    """Return all plans for wraps with that version of Python: few enough to deploy at once.

    The first wrap of ``one`` also serves for the interpreter's constants. ``threads`` only checks
    predictions, so a mechanism that not every Python has takes its place.

    Plans of one process use no mechanism.
    """
    tried = [name for name in mechanisms_with(python) if name not in EVERYWHERE]
    return [
        shape("one", [[1]]),
        *([shape(few(name), [[1] * 2], name) for name in tried] or [shape("threads", [[THREADS]])]),
        shape("stages", [[1]], stages=STAGES),
        *(shape(few(name), [[1] * 2], name) for name in EVERYWHERE),
        *(shape(many(name), [[1] * PROCESSES], name) for name in EVERYWHERE),
        shape("remote-few", [[1]] * 2),
        shape("remote-many", [[1]] * (1 + REMOTES)),
    ]


def numerous() -> tuple[Shape, Shape, Shape]:
    """Return plans of many parallel threads, many stages, and many items of a Map."""
    return shape("wide", [[NUMEROUS]]), shape("chain", [[1]], stages=NUMEROUS), _map()


def _map() -> Shape:
    one = shape("map", [[1]])
    task = {"Type": "Task", "Resource": FUNCTIONS[0], "End": True}
    each = {"StartAt": _name(0), "States": {_name(0): task}}
    state = {"Type": "Map", "ItemProcessor": each, "End": True}
    machine = parse_states({"StartAt": "map", "States": {"map": state}}, one.workflow.name)
    request, single = (b"[%b]" % b",".join([_NOTHING] * items) for items in (NUMEROUS, 1))
    return Shape(one.name, machine, one.plan, request, single)


def few(mechanism: str) -> str:
    """Return the plan of two processes."""
    return f"{mechanism}-few"


def many(mechanism: str) -> str:
    """Return the plan of `PROCESSES` processes."""
    return f"{mechanism}-many"


def crowd() -> Shape:
    """Return a plan of threads that exchange GILs while all cores compute."""
    return shape("crowd", [[CROWD_THREADS] * CROWD_PROCESSES], LASTING)


def chains() -> Shape:
    """Return a plan of two processes whose threads continue once their inputs exist."""
    return shape("chains", [[CHAINS] * 2], stages=2)


def shape(
    name: str,
    sizes: Sequence[Sequence[int]],
    mechanism: str = DEFAULT_MECHANISM,
    *,
    stages: int = 1,
) -> Shape:
    """Stages of no-ops: ``sizes`` has the number of threads for each process of each wrap.

    The input of every no-op is the output at its place in the stage before. Neighbours, within a
    stage and between stages, alternate between the two `FUNCTIONS`.
    """
    workflow_name = f"chiron-calibrate-{_own(os.getpid())}-{name}"
    width = sum(map(sum, sizes))
    layout = [_named(sizes, count(stage * width)) for stage in range(stages)]
    wraps = tuple(
        Wrap(
            name=f"{workflow_name}-wrap{index}",
            cpus=len(processes),
            memory_mib=_MEMORY_MIB,
            mechanism=mechanism,
            processes=over_stages([stage[index - 1] for stage in layout]),
        )
        for index, processes in enumerate(sizes, start=1)
    )
    tasks = [
        Task(
            _name(n),
            FUNCTIONS[(n // width + n % width) % 2],
            _name(n - width) if n >= width else None,
        )
        for n in range(stages * width)
    ]
    outputs = tuple(task.name for task in tasks[-width:])
    plan = Plan(
        format=2,
        workflow=workflow_name,
        planner="calibration",
        wraps=wraps,
        cpus=sum(wrap.cpus for wrap in wraps),
    )
    return Shape(name, Workflow(workflow_name, tuple(tasks), outputs), plan)


def handed_over(
    name: str, sizes: Sequence[Sequence[int]], mechanism: str = DEFAULT_MECHANISM
) -> Shape:
    """Return two no-ops in sequence; the first's output is the second's input; see `shape`."""
    both = shape(name, sizes, mechanism)
    first, second = both.workflow.tasks
    tasks = (first, replace(second, source=first.name))
    return replace(both, workflow=replace(both.workflow, tasks=tasks, output=second.name))


@cache
def _own(process: int) -> str:
    """Return a name that separates this process's no-ops from others on the gateway."""
    return secrets.token_hex(3)


def write_folder(path: Path) -> WorkflowFolder:
    """Write a workflow folder at `path` with the no-op functions.

    Its workflow uses all of them. A function outside the workflow would be deployed beside each
    plan, and exceed the 15 functions of the Community Edition.
    """
    for name in FUNCTIONS:
        code = path / "functions" / name
        code.mkdir(parents=True)
        shutil.copy(Path(noop_handler.__file__), code / "handler.py")
        if name != FUNCTIONS[0]:
            (code / noop_handler.SECOND).touch()
    stack = _STACK + "".join(_STACK_FUNCTION.format(name=name) for name in FUNCTIONS)
    (path / "stack.yaml").write_text(stack, encoding="utf-8")
    return WorkflowFolder(path, shape("all", [[len(FUNCTIONS)]]).workflow)


def _named(
    sizes: Sequence[Sequence[int]], numbers: Iterator[int]
) -> list[tuple[tuple[str, ...], ...]]:
    """Return the names of a stage's tasks, by wrap and process."""
    return [
        tuple(tuple(_name(next(numbers)) for _ in range(size)) for size in processes)
        for processes in sizes
    ]


def _name(number: int) -> str:
    return f"t{number}"

"""The plans that calibration deploys: no-op functions as threads, processes and remote wraps.

Two plans of a kind differ in one size only, so that the difference of their latencies is one
constant.
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

from chiron.predictor.mechanisms import DEFAULT_MECHANISM, MECHANISMS
from chiron.profiler import noop_handler
from chiron.scheduler.layout import over_stages
from chiron.workflow.asl import parse_states
from chiron.workflow.folder import WorkflowFolder
from chiron.workflow.model import Task, Workflow
from chiron.workflow.plan import Plan, Wrap

#: The request that has each no-op do nothing.
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

#: Threads, processes, remote wraps and stages of the larger plan of each kind.
THREADS, PROCESSES, REMOTES, STAGES = 8, 5, 3, 4
#: Threads, or stages, of the plans whose no-ops do nothing: with fewer, noise would be the slope.
NUMEROUS = 33
#: Processes that compute at once, each with a core, and the threads of each.
CROWD_PROCESSES, CROWD_THREADS = 2, 4
#: The chains of each of two processes.
CHAINS = 2
#: The mechanism whose processes are there already: what they are seen to do is not their start.
LASTING = next(name for name, mechanism in MECHANISMS.items() if mechanism.lasting)


@dataclass(frozen=True)
class Shape:
    """A workflow of no-ops, the plan that it is deployed as, and the request to do nothing.

    Where it depends on the request how many no-ops there are, ``single`` is the one for one.
    """

    name: str
    workflow: Workflow
    plan: Plan
    request: bytes = _NOTHING
    single: bytes | None = None


def shapes() -> list[Shape]:
    """All plans; the first wrap of ``one`` answers the interpreter's constants too.

    Those of one process have no mechanism at work.
    """
    return [
        shape("one", [[1]]),
        shape("threads", [[THREADS]]),
        shape("stages", [[1]], stages=STAGES),
        *(shape(few(name), [[1] * 2], name) for name in MECHANISMS),
        *(shape(many(name), [[1] * PROCESSES], name) for name in MECHANISMS),
        shape("remote-few", [[1]] * 2),
        shape("remote-many", [[1]] * (1 + REMOTES)),
    ]


def numerous() -> tuple[Shape, Shape, Shape]:
    """Many threads beside each other, many stages after each other, many items of a Map."""
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
    """The plan of two processes."""
    return f"{mechanism}-few"


def many(mechanism: str) -> str:
    """The plan of `PROCESSES` processes."""
    return f"{mechanism}-many"


def crowd() -> Shape:
    """Threads that hand their processes' GILs on while others compute on the other cores."""
    return shape("crowd", [[CROWD_THREADS] * CROWD_PROCESSES], LASTING)


def chains() -> Shape:
    """Threads of two processes that go on as soon as what they need is there."""
    return shape("chains", [[CHAINS] * 2], stages=2)


def shape(
    name: str,
    sizes: Sequence[Sequence[int]],
    mechanism: str = DEFAULT_MECHANISM,
    *,
    stages: int = 1,
) -> Shape:
    """Stages of no-ops: ``sizes`` has the number of threads for each process of each wrap.

    Every no-op gets what the one in its place in the stage before has given. Those beside each
    other, and those after one another, are of one and the other of `FUNCTIONS`.
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
    """Two no-ops, the second of which gets what the first has given, as `shape` has `sizes`."""
    both = shape(name, sizes, mechanism)
    first, second = both.workflow.tasks
    tasks = (first, replace(second, source=first.name))
    return replace(both, workflow=replace(both.workflow, tasks=tasks, output=second.name))


@cache
def _own(process: int) -> str:
    """What tells the no-ops of a process from those of others on one gateway."""
    return secrets.token_hex(3)


def write_folder(path: Path) -> WorkflowFolder:
    """A workflow folder at `path` with the no-op functions.

    Its own workflow has them all: one that supports it would be deployed beside each plan, which
    is one more than the 15 functions of the Community Edition.
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
    """The names of one stage's tasks, by wrap and process."""
    return [
        tuple(tuple(_name(next(numbers)) for _ in range(size)) for size in processes)
        for processes in sizes
    ]


def _name(number: int) -> str:
    return f"t{number}"

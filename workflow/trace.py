"""The actions of a state machine for one request, as a graph of instances."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated

from pydantic import Field

from chiron.workflow.documents import Document
from chiron.workflow.model import Task, Workflow


class Instance(Document):
    """A run of a task, or a wait if `task` is None.

    ``after`` are the indices of its predecessors, which come before it. ``work`` is its time
    relative to the profile of its function. A task that exceeded its time limit has the limit as
    ``wait_ms``, whatever its function takes. A ``dropped`` instance had begun when a parallel task
    failed: nothing awaits its end.
    """

    task: str | None = None
    after: tuple[int, ...] = ()
    wait_ms: float = 0.0
    failed: bool = False
    dropped: bool = False
    work: Annotated[float, Field(ge=0)] = 1.0


def unrolled(workflow: Workflow, trace: Sequence[Instance]) -> Workflow:
    """Return the actions as a plain workflow, with a task for each instance and wait.

    NAME#2 is the second instance of NAME; the function of a wait is `wait_of` it. Dropped instances
    are left out, as the request does not wait for them.
    """
    names, counts, awaited = list[str](), Counter[str](), set[str]()
    tasks = []
    for instance in trace:
        function = wait_of(instance) if instance.task is None else None
        task = instance.task or function or ""
        counts[task] += 1
        names.append(f"{task}#{counts[task]}")
        if instance.dropped:
            continue
        needed = tuple(names[place] for place in instance.after)
        awaited.update(needed)
        source = needed if len(needed) > 1 else (needed or (None,))[0]
        tasks.append(Task(names[-1], function or workflow.function_of(task), source))
    last = tuple(task.name for task in tasks if task.name not in awaited)
    output = last if len(last) > 1 else (last or (None,))[0]
    return Workflow(workflow.name, tuple(tasks), output, decided=True)


def wait_of(instance: Instance) -> str:
    """Return the function that represents a wait in simulations; only its name has a space."""
    return f"wait {instance.wait_ms:g} ms"


def is_wait(function: str) -> bool:
    return " " in function


def task_of(name: str) -> str:
    return name.rpartition("#")[0]

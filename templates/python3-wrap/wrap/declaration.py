"""What runs where: the declaration that a generated ``function/handler.py`` makes of its wrap."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

#: Where a text comes from: the request, one task's output, or a JSON list of several outputs.
Source = int | list[int] | None

STYLES = ("flask", "http")
_NAME = re.compile(r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?")


def is_name(text: str) -> bool:
    """Whether a function may be called so."""
    return _NAME.fullmatch(text) is not None


@dataclass(frozen=True)
class Entry:
    """The whole workflow, as the one wrap knows it that receives its requests.

    Parameters
    ----------
    inputs
        For every task of the workflow, where its input comes from.
    output
        Where the workflow's output comes from.
    stages
        Per stage: remote wrap -> the tasks that it runs, in plan order.
    fail
        (error, cause) where the workflow ends in a Fail state.
    functions
        The functions of the tasks that remote wraps run, by which errors name them.
    """

    inputs: dict[int, Source]
    output: Source
    stages: list[dict[str, list[int]]]
    fail: tuple[str, str] | None = None
    functions: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Wrap:
    """One wrap: its functions, its tasks, and the processes of each stage.

    Parameters
    ----------
    mechanism
        How further processes come to be: see `wrap.mechanisms`.
    functions
        Function -> handler style; its code is in ``function/functions/NAME``.
    tasks
        Task number -> function.
    stages
        Stage number -> processes -> task numbers. The first is the main process: its tasks are
        threads of the server.
    timeout_s
        Seconds from the arrival of a request to its answer.
    timeouts_s
        Function -> seconds that it may take, for those that have a limit of their own.

    Raises
    ------
    ValueError
        The declaration contradicts itself; the message says where.
    """

    workflow: str
    name: str
    mechanism: str
    functions: dict[str, str]
    tasks: dict[int, str]
    stages: dict[int, list[list[int]]]
    timeout_s: float
    entry: Entry | None = None
    timeouts_s: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for problem in _problems(self):
            raise ValueError(f"wrap {self.name}: {problem}")

    def names(self, tasks: Iterable[int]) -> str:
        """The functions of some tasks, its own or remote ones, in one word of an error."""
        known = self.tasks if self.entry is None else self.entry.functions | self.tasks
        return ", ".join(sorted({known[task] for task in tasks if task in known}))

    @property
    def threads(self) -> int:
        """The tasks in the main process of the stage that has the most."""
        return max(
            (len(processes[0]) for processes in self.stages.values() if processes), default=0
        )

    @property
    def slots(self) -> int:
        """The number of further processes of the stage that has the most."""
        return max((len(processes) - 1 for processes in self.stages.values()), default=0)


def _problems(wrap: Wrap) -> Iterator[str]:
    for function, style in wrap.functions.items():
        if not is_name(function):
            yield f"{function!r} is not a function's name"
        if style not in STYLES:
            yield f"function {function}: style {style!r} is none of {', '.join(STYLES)}"
    for task, function in wrap.tasks.items():
        if function not in wrap.functions:
            yield f"task {task}: function {function!r} is not declared"
    placed = [task for task, _ in _placed(wrap)]
    if sorted(placed) != sorted(wrap.tasks):
        yield "every task has to be in exactly one process"
    if not all(seconds > 0 for seconds in (wrap.timeout_s, *wrap.timeouts_s.values())):
        yield f"timeouts are {wrap.timeout_s}, {wrap.timeouts_s}, but have to be above 0"
    if wrap.entry is not None:
        yield from _entry_problems(wrap, wrap.entry)


def _placed(wrap: Wrap) -> Iterator[tuple[int, int]]:
    for stage, processes in wrap.stages.items():
        for tasks in processes:
            yield from ((task, stage) for task in tasks)


def _entry_problems(wrap: Wrap, entry: Entry) -> Iterator[str]:
    stage_of = dict(_placed(wrap))
    for stage, remotes in enumerate(entry.stages):
        stage_of |= {task: stage for tasks in remotes.values() for task in tasks}
    if stage_of.keys() != entry.inputs.keys():
        yield "the entry's inputs and stages do not have the same tasks"
    if max(stage_of.values(), default=-1) >= len(entry.stages):
        yield "a stage of the wrap is not a stage of the entry"
    for task, source in entry.inputs.items():
        for needed in _tasks_of(source):
            if needed not in stage_of or stage_of[needed] >= stage_of.get(task, 0):
                yield f"task {task} needs task {needed}, which is in no earlier stage"
    for needed in _tasks_of(entry.output):
        if needed not in stage_of:
            yield f"the output needs task {needed}, which nothing runs"


def _tasks_of(source: Source) -> list[int]:
    if source is None:
        return []
    return [source] if isinstance(source, int) else source

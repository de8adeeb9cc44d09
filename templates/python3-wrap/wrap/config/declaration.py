"""The fields of a wrap's declaration: chiron's generator writes them, a wrap reads them.

chiron has the module too, under another name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: Where an input comes from, as `wrap.core.program.Source` has it.
NumberedSource = int | list[int] | None


@dataclass(frozen=True)
class EntryDeclaration:
    """What the one wrap knows beside its own tasks that receives the workflow's requests.

    Parameters
    ----------
    output
        Where the workflow's output comes from.
    fail
        (error, cause) where the workflow ends in a Fail state.
    machine
        The state machine of a workflow that decides while it runs.
    states
        The task of each of its Task states, or of each name in `buckets`.
    in_stages
        Whether what it begins waits until all that runs has ended.
    emits
        By their names, the outputs that the one task of it emits, which its answer has too.
    buckets
        What `wrap.core.buckets.flow` goes by, of a workflow whose requests are events; each task is
        then run by itself, on what has fired.
    styles
        Those of the functions whose tasks get the request: their templates serve its method.
    """

    output: NumberedSource
    fail: tuple[str, str] | None = None
    machine: dict[str, Any] | None = None
    states: dict[str, int] = field(default_factory=dict)
    in_stages: bool = False
    emits: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, Any] | None = None
    styles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WrapDeclaration:
    """One wrap: its functions, its tasks, and the processes that these run in.

    Parameters
    ----------
    mechanism
        How further processes come to be: see `wrap.workers.mechanisms`.
    functions
        Function -> its style; its code, unless it is deployed by itself, is in
        ``function/functions/NAME/function``.
    tasks
        Task number -> function.
    processes
        The tasks of each process. The first is the main process: its tasks are threads of the
        server.
    inputs
        Where the input of each task of the workflow comes from.
    buckets
        ``(awaits, starts)``: tasks that start when others have given their objects, each pair
        after those whose tasks it awaits.
    timeout_s
        Seconds from the arrival of a request to its answer.
    timeouts_s
        Function -> seconds that it may take, for those that have a limit of their own.
    instances
        How many tasks the workflow has, if it decides while it runs; its tasks then have neither
        inputs nor buckets, and may be in several processes.
    remotes
        Other wrap -> the tasks that run there, and their functions, by which errors name them. Of a
        workflow that decides, the entry alone has to know them.
    path
        How objects get to other wraps: see `workflow.plan.PathKind`.
    attempts
        How often a task is started whose process or wrap is lost.
    commands
        Function -> program and arguments, for those of the style ``command``.
    emits
        What tasks, also of other wraps, emit before their ends: a number like a task's, which
        begins with the task that emits it -> that one, and the output's name there.
    streams
        Task, also of other wraps -> the outputs that it reads as streams, by the names that it
        opens them by, and no part of its input. What comes with the request has numbers below 0.
    live
        Output -> the tasks that read it while it is written, where all of an execution is here or
        wraps have direct connections; else they begin when it has been written.
    passing
        Those of the outputs in `live` that nobody needs as a whole.
    live_buckets
        What tasks wait for then.
    task_names
        How tasks are called, also of other wraps, where not like their functions.
    answers
        The task whose HTTP answer is the workflow's, if there is exactly one such task.
    """

    workflow: str
    name: str
    mechanism: str
    functions: dict[str, str]
    tasks: dict[int, str]
    processes: list[list[int]]
    inputs: dict[int, NumberedSource]
    buckets: list[tuple[list[int], list[int]]]
    timeout_s: float
    entry: EntryDeclaration | None = None
    timeouts_s: dict[str, float] = field(default_factory=dict)
    instances: int = 0
    remotes: dict[str, dict[int, str]] = field(default_factory=dict)
    path: str = "auto"
    attempts: int = 1
    commands: dict[str, list[str]] = field(default_factory=dict)
    emits: dict[int, tuple[int, str]] = field(default_factory=dict)
    streams: dict[int, dict[str, int]] = field(default_factory=dict)
    live: dict[int, list[int]] = field(default_factory=dict)
    passing: list[int] = field(default_factory=list)
    live_buckets: list[tuple[list[int], list[int]]] = field(default_factory=list)
    task_names: dict[int, str] = field(default_factory=dict)
    answers: int | None = None

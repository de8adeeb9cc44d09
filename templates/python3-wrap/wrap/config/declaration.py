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
    """What the one wrap knows beside its own tasks that receives the workflow's requests."""

    #: Where the workflow's output comes from.
    output: NumberedSource
    #: (error, cause) where the workflow ends in a Fail state.
    fail: tuple[str, str] | None = None
    #: The state machine of a workflow that decides while it runs.
    machine: dict[str, Any] | None = None
    #: The task of each of its Task states, or of each name in `buckets`.
    states: dict[str, int] = field(default_factory=dict)
    #: Whether what it begins waits until all that runs has ended.
    in_stages: bool = False
    #: By their names, the outputs that the one task of it emits, which its answer has too.
    emits: dict[str, int] = field(default_factory=dict)
    #: What `wrap.core.buckets.flow` goes by, of a workflow whose requests are events; each task is
    #: then run by itself, on what has fired.
    buckets: dict[str, Any] | None = None
    #: Those of the functions whose tasks get the request: their templates serve its method.
    styles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WrapDeclaration:
    """One wrap: its functions, its tasks, and the processes that these run in."""

    workflow: str
    name: str
    #: How further processes come to be: see `wrap.workers.mechanisms`.
    mechanism: str
    #: Function -> its style; its code, unless it is deployed by itself, is in
    #: ``function/functions/NAME/function``.
    functions: dict[str, str]
    #: Task number -> function.
    tasks: dict[int, str]
    #: The tasks of each process. The first is the main process: its tasks are threads of the
    #: server.
    processes: list[list[int]]
    #: Where the input of each task of the workflow comes from.
    inputs: dict[int, NumberedSource]
    #: ``(awaits, starts)``: tasks that start when others have given their objects, each pair after
    #: those whose tasks it awaits.
    buckets: list[tuple[list[int], list[int]]]
    #: Seconds from the arrival of a request to its answer.
    timeout_s: float
    entry: EntryDeclaration | None = None
    #: Function -> seconds that it may take, for those that have a limit of their own.
    timeouts_s: dict[str, float] = field(default_factory=dict)
    #: How many tasks the workflow has, if it decides while it runs; its tasks then have neither
    #: inputs nor buckets, and may be in several processes.
    instances: int = 0
    #: Other wrap -> the tasks that run there, and their functions, by which errors name them. Of a
    #: workflow that decides, the entry alone has to know them.
    remotes: dict[str, dict[int, str]] = field(default_factory=dict)
    #: How objects get to other wraps: see `workflow.plan.PathKind`.
    path: str = "auto"
    #: How often a task is started whose process or wrap is lost.
    attempts: int = 1
    #: Function -> program and arguments, for those of the style ``command``.
    commands: dict[str, list[str]] = field(default_factory=dict)
    #: What tasks, also of other wraps, emit before their ends: a number like a task's, which begins
    #: with the task that emits it -> that one, and the output's name there.
    emits: dict[int, tuple[int, str]] = field(default_factory=dict)
    #: Task, also of other wraps -> the outputs that it reads as streams, by the names that it opens
    #: them by, and no part of its input. What comes with the request has numbers below 0.
    streams: dict[int, dict[str, int]] = field(default_factory=dict)
    #: Output -> the tasks that read it while it is written, where all of an execution is here or
    #: wraps have direct connections; else they begin when it has been written.
    live: dict[int, list[int]] = field(default_factory=dict)
    #: Those of the outputs in `live` that nobody needs as a whole.
    passing: list[int] = field(default_factory=list)
    #: What tasks wait for then.
    live_buckets: list[tuple[list[int], list[int]]] = field(default_factory=list)
    #: How tasks are called, also of other wraps, where not like their functions.
    task_names: dict[int, str] = field(default_factory=dict)
    #: The task whose HTTP answer is the workflow's, if there is exactly one such task.
    answers: int | None = None

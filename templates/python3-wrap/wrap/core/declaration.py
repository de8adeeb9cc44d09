"""The fields of a wrap's declaration, which chiron's generator writes and a wrap reads.

chiron has the module too, under another name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

#: The source of an input; see `wrap.core.program.Source`.
NumberedSource = int | list[int] | None


@dataclass(frozen=True)
class EntryDeclaration:
    """The additional fields of the entry wrap, which receives the workflow's requests."""

    #: The source of the workflow's output.
    output: NumberedSource
    #: (error, cause) if the workflow ends in a Fail state.
    fail: tuple[str, str] | None = None
    #: The state machine, if the workflow decides while it runs.
    machine: dict[str, Any] | None = None
    #: The task of each of its Task states, or of each name in `buckets`.
    states: dict[str, int] = field(default_factory=dict)
    #: Whether new tasks wait until all running tasks have ended.
    in_stages: bool = False
    #: Name -> output that its only task emits; the answer has these outputs too.
    emits: dict[str, int] = field(default_factory=dict)
    #: The rules for `wrap.core.buckets.flow`, if requests are events; each task then runs by
    #: itself, on the objects of a firing.
    buckets: dict[str, Any] | None = None
    #: The styles of the functions that get the request: their templates decide on its methods.
    styles: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class WrapDeclaration:
    """One wrap: its functions, its tasks, and the processes in which they run."""

    workflow: str
    name: str
    #: How worker processes are made; see `wrap.workers.mechanisms`.
    mechanism: str
    #: Function -> its style; its code, unless it is deployed by itself, is in
    #: ``function/functions/NAME/function``.
    functions: dict[str, str]
    #: Task number -> function.
    tasks: dict[int, str]
    #: The tasks of each process. The first is the main process, whose tasks are threads of the
    #: server.
    processes: list[list[int]]
    #: Task of the workflow -> the source of its input.
    inputs: dict[int, NumberedSource]
    #: ``(awaits, starts)``: `starts` are tasks that start when the tasks in `awaits` have given
    #: their objects. Each pair follows the pairs of the tasks that it awaits.
    buckets: list[tuple[list[int], list[int]]]
    #: Timeout from the arrival of a request to its answer, in seconds.
    timeout_s: float
    entry: EntryDeclaration | None = None
    #: Function -> its timeout in seconds, for functions with their own.
    timeouts_s: dict[str, float] = field(default_factory=dict)
    #: The number of tasks of the workflow, if it decides while it runs; its tasks then have neither
    #: inputs nor buckets, and may be in several processes.
    instances: int = 0
    #: Other wrap -> its tasks and their functions, for errors. If the workflow decides while it
    #: runs, only the entry needs this.
    remotes: dict[str, dict[int, str]] = field(default_factory=dict)
    #: How objects get to other wraps; see `workflow.plan.PathKind`.
    path: str = "auto"
    #: The most starts of a task whose process or wrap is lost.
    attempts: int = 1
    #: Function -> program and arguments, for functions of the style ``command``.
    commands: dict[str, list[str]] = field(default_factory=dict)
    #: Output that a task, also of another wrap, emits before its end -> the task and the output's
    #: name. An output has a number like a task's, and begins with its task.
    emits: dict[int, tuple[int, str]] = field(default_factory=dict)
    #: Task, also of other wraps -> the outputs that it reads as streams, by the names that it
    #: opens; they are not part of its input. Streams in the request have numbers below 0.
    streams: dict[int, dict[str, int]] = field(default_factory=dict)
    #: Output -> the tasks that read it while it is written. This needs the whole execution here, or
    #: direct connections between wraps; else they begin when it has been written.
    live: dict[int, list[int]] = field(default_factory=dict)
    #: The outputs in `live` that nobody needs as a whole.
    passing: list[int] = field(default_factory=list)
    #: The `buckets` for live reading.
    live_buckets: list[tuple[list[int], list[int]]] = field(default_factory=list)
    #: Task, also of other wraps -> its name, if this is not its function's.
    task_names: dict[int, str] = field(default_factory=dict)
    #: The task whose HTTP answer is the workflow's, if there is exactly one such task.
    answers: int | None = None

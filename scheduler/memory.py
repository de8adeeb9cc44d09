"""How much memory a wrap needs for its functions and processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chiron.workflow.model import Workflow, giver_of
from chiron.workflow.profile import FunctionProfile, Profile
from chiron.workflow.streaming import live_streams

#: What a wrap needs before it runs anything: Python and waitress, with room to breathe, since a
#: limit that is hit kills.
BASE_MEMORY_MIB = 84
#: Of which an idle wrap takes so much whose functions import nothing: 29 to 31 MiB measured.
IDLE_MEMORY_MIB = 32
#: What Flask takes, which each wrap with further processes has there before they are forked.
FLASK_MEMORY_MIB = 12
#: What a further process takes whose functions need no memory: the pages that it does not share
#: with its parent. 2 to 3.3 MiB measured.
FORKED_MEMORY_MIB = 4
#: The same for as many requests as a wrap runs at once on one CPU.
PROCESS_MEMORY_MIB = 4 * FORKED_MEMORY_MIB


def at_once_mib(tasks: Sequence[str], workflow: Workflow, profile: Profile) -> float:
    """An upper bound of what the tasks of a process take at the same time, whatever the trigger.

    Two tasks are never there at the same time where one has ended before the other, which needs it,
    if only through further ones: it takes again what the other has left. What a task takes beyond
    that adds up. But a task is there with those whose streams it reads, if only through further
    streams.

    `tasks` are in topological order. What they run in, such as a JVM, is left out: see
    `runtimes_mib`.
    """
    total_mib = 0.0
    left_mib: dict[str, float] = {}
    beside = _read_together(workflow) if workflow.streaming else {}
    for task in tasks:
        function = profile.functions[workflow.function_of(task)]
        taken_mib = wanted_mib = function.memory_mib - function.runtime_mib
        ended_before = workflow.ended_before[task] - beside.get(task, frozenset())
        for ended in sorted(left_mib.keys() & ended_before):
            again_mib = min(left_mib[ended], wanted_mib)
            wanted_mib -= again_mib
            left_mib[ended] -= again_mib
            if not left_mib[ended]:
                del left_mib[ended]
        total_mib += wanted_mib
        left_mib[task] = taken_mib
    return total_mib


def runtimes_mib(tasks: Iterable[str], workflow: Workflow, profile: Profile) -> float:
    """What the JVM and the process of Node.js take that `tasks` of one process share."""
    found: dict[str, float] = {}
    for task in tasks:
        function = profile.functions[workflow.function_of(task)]
        found[function.runtime] = max(function.runtime_mib, found.get(function.runtime, 0.0))
    return sum(found.values())


def _read_together(workflow: Workflow) -> dict[str, frozenset[str]]:
    """For every task that reads streams while they are written, those that run meanwhile."""
    found: dict[str, frozenset[str]] = {}
    live = live_streams(workflow)
    for name in (name for stage in workflow.stages for name in stage):
        read = (giver_of(output) for output, readers in live.items() if name in readers)
        for writer in read:
            its = found.get(writer, frozenset()) | {writer}
            found[name] = found.get(name, frozenset()) | its
    return found


def running_mib(processes: Sequence[Sequence[str]], workflow: Workflow, profile: Profile) -> float:
    """An upper bound of what the tasks of a wrap's processes take for one request.

    A further process also takes for itself what its functions import there, and what they write to
    of the memory that it was forked with, and what its functions run in. That is above what any
    process takes, for which each request counts `FORKED_MEMORY_MIB` more.
    """
    _, *further = processes
    alone_mib = 0.0
    for process in further:
        functions = {workflow.function_of(task): None for task in process}
        alone_mib += _forked_mib(map(profile.functions.__getitem__, functions))
        alone_mib += runtimes_mib(process, workflow, profile)
    return alone_mib + sum(at_once_mib(process, workflow, profile) for process in processes)


def _forked_mib(functions: Iterable[FunctionProfile]) -> float:
    """What `functions` have a further process take beyond their own memory."""
    return _largest_mib(
        (each, (each.forked_mib or 0.0) - each.memory_mib - FORKED_MEMORY_MIB) for each in functions
    )


def imports_mib(functions: Iterable[FunctionProfile]) -> float:
    """What the modules of all of `functions` take together."""
    return _largest_mib((each, (each.idle_mib or 0.0) - IDLE_MEMORY_MIB) for each in functions)


def _largest_mib(taken: Iterable[tuple[FunctionProfile, float]]) -> float:
    """What functions take together, counting once what those with the same requirements import."""
    largest: dict[tuple[str, ...], float] = {}
    for function, mib in taken:
        key = tuple(sorted(function.requirements))
        largest[key] = max(mib, largest.get(key, 0.0))
    return sum(largest.values())

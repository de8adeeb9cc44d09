"""The memory that a wrap needs for its functions and processes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from chiron.predictor.mechanisms.mechanism import Mechanism
from chiron.workflow.model import Workflow, giver_of
from chiron.workflow.profile import FunctionProfile, Profile
from chiron.workflow.streaming import live_streams

#: The memory of a wrap before it runs anything: Python and waitress, with a margin, since a process
#: that hits the limit is killed.
BASE_MEMORY_MIB = 84
#: The part of it that an idle wrap uses if its functions import nothing: 29 to 31 MiB measured.
IDLE_MEMORY_MIB = 32
#: The memory of Flask, which a wrap with further processes imports before it forks them.
FLASK_MEMORY_MIB = 12
#: The memory of a further process whose functions need none, if it is forked.
FORKED_MEMORY_MIB = Mechanism.further_mib
#: How many requests a wrap runs at once on one CPU.
AT_ONCE = 4


def at_once_mib(tasks: Sequence[str], workflow: Workflow, profile: Profile) -> float:
    """Return an upper bound of the memory that a process's tasks use at once, for any trigger.

    Two tasks do not overlap if one needs the other, at least indirectly: the later task reuses the
    memory of the earlier one. Memory beyond that adds up. But a task overlaps with the writers of
    the streams that it reads, also through further streams.

    `tasks` are in topological order. Runtimes, such as a JVM, are excluded: see `runtimes_mib`.
    """
    total_mib = 0.0
    left_mib: dict[str, float] = {}
    beside = _read_together(workflow) if workflow.streaming else {}
    for task in tasks:
        function = profile.functions[workflow.function_of(task)]
        taken_mib = wanted_mib = max(0.0, function.memory_mib - function.runtime_mib)
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
    """Return the memory of the JVM and the Node.js process that `tasks` of one process share."""
    found: dict[str, float] = {}
    for task in tasks:
        function = profile.functions[workflow.function_of(task)]
        found[function.runtime] = max(function.runtime_mib, found.get(function.runtime, 0.0))
    return sum(found.values())


def _read_together(workflow: Workflow) -> dict[str, frozenset[str]]:
    """Return for every task that reads streams while they are written the tasks that overlap it."""
    found: dict[str, frozenset[str]] = {}
    live = live_streams(workflow)
    for name in (name for stage in workflow.stages for name in stage):
        read = (giver_of(output) for output, readers in live.items() if name in readers)
        for writer in read:
            its = found.get(writer, frozenset()) | {writer}
            found[name] = found.get(name, frozenset()) | its
    return found


def running_mib(processes: Sequence[Sequence[str]], workflow: Workflow, profile: Profile) -> float:
    """Return an upper bound of the memory of a wrap's tasks for one request.

    A further process also needs memory for its functions' imports, for the pages of its fork that
    they write to, and for their runtimes. Each request adds `FORKED_MEMORY_MIB` for each further
    process, not counted here.
    """
    _, *further = processes
    alone_mib = 0.0
    for process in further:
        functions = {workflow.function_of(task): None for task in process}
        alone_mib += _forked_mib(map(profile.functions.__getitem__, functions))
        alone_mib += runtimes_mib(process, workflow, profile)
    return alone_mib + sum(at_once_mib(process, workflow, profile) for process in processes)


def _forked_mib(functions: Iterable[FunctionProfile]) -> float:
    """Return the memory that `functions` add to a further process beyond their own."""
    return _largest_mib(
        (each, (each.forked_mib or 0.0) - each.memory_mib - FORKED_MEMORY_MIB) for each in functions
    )


def imports_mib(functions: Iterable[FunctionProfile]) -> float:
    """Return the memory of the modules of all `functions` together."""
    return _largest_mib((each, (each.idle_mib or 0.0) - IDLE_MEMORY_MIB) for each in functions)


def _largest_mib(taken: Iterable[tuple[FunctionProfile, float]]) -> float:
    """Return the memory of functions together; equal requirements are imported once."""
    largest: dict[tuple[str, ...], float] = {}
    for function, mib in taken:
        key = tuple(sorted(function.requirements))
        largest[key] = max(mib, largest.get(key, 0.0))
    return sum(largest.values())

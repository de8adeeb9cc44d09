"""Which files a function reads and writes, for the scheduler's conflict check."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from profiler.handler_run import HandlerRun
from profiler.strace_text import Call

_QUOTED = re.compile(r'"((?:[^"\\]|\\.)*)"')
_OPENING = frozenset({"open", "openat", "openat2", "creat"})
_CHANGING = frozenset(
    {"unlink", "unlinkat", "rename", "renameat", "renameat2", "mkdir", "mkdirat", "rmdir"}
    | {"truncate"}
)
_WRITING_FLAGS = re.compile(r"\b(O_WRONLY|O_RDWR|O_CREAT|O_TRUNC|O_APPEND)\b")


@dataclass(frozen=True)
class Files:
    """Paths as the function names them, sorted."""

    read: tuple[str, ...]
    written: tuple[str, ...]


def files(runs: Sequence[HandlerRun]) -> Files:
    """The files that most of `runs` opened; names made up for one run are in no other."""
    read: Counter[str] = Counter()
    written: Counter[str] = Counter()
    for run in runs:
        calls = [call for strand in run.strands for call in strand.calls if not call.failed]
        read.update(set(_read(calls)))
        written.update(set(_written(calls)))
    return Files(_common(read, len(runs)), _common(written, len(runs)))


def _common(counts: Counter[str], runs: int) -> tuple[str, ...]:
    return tuple(sorted(path for path, count in counts.items() if 2 * count > runs))


def _read(calls: Iterable[Call]) -> Iterable[str]:
    for call in calls:
        if call.name in _OPENING and call.name != "creat" and "O_WRONLY" not in call.arguments:
            yield from _paths(call)


def _written(calls: Iterable[Call]) -> Iterable[str]:
    for call in calls:
        opens = call.name in _OPENING and _WRITING_FLAGS.search(call.arguments)
        if opens or call.name == "creat" or call.name in _CHANGING:
            yield from _paths(call)


def _paths(call: Call) -> Iterable[str]:
    """The paths among the arguments; a path without a name is of no use to anybody."""
    return (path for path in _QUOTED.findall(call.arguments) if path)

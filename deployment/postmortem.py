"""Explains failed functions: adds the fix to the error, and saves their logs to a file."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import NamedTuple

from chiron.generator.annotations import read_functions
from chiron.openfaas.client import Gateway
from chiron.openfaas.endings import TAIL, last_words, memory_note
from chiron.openfaas.objects import FunctionStatus, LogLine
from chiron.workflow.documents import Document
from chiron.workflow.errors import ChironError

#: The log lines to save of each function.
_KEPT = 2000
#: The prefix of a wrap's log line: the function, and the execution if known.
_PRINTED = re.compile(r"\[([\w-]+)(?: ([\w-]+))?\] ")
#: The rest of an entry wrap's line on a failed execution: the error's code and its message.
_FAILED = re.compile(r"failed with ([\w-]+): (.*)")


class LogEntry(NamedTuple):
    """A line of a log, with its function and execution, both empty if unknown."""

    function: str
    execution: str
    text: str


class FailedExecution(Document):
    """An execution that was answered with an error.

    ``at`` is RFC 3339, ``execution`` the start of its X-Call-Id; ``function`` the one that failed,
    or else the wrap.
    """

    at: str
    function: str
    execution: str
    code: str
    message: str


@contextmanager
def explain_failures(gateway: Gateway) -> Iterator[None]:
    """Add the fix to errors of the block that a memory limit caused.

    The error then also has the functions that ran there, the line of stack.yaml and the log's end.
    """
    try:
        yield
    except ChironError as error:
        with suppress(ChironError):  # the first of the two errors is the cause
            _explain(gateway, error)
        raise


def keep_logs(gateway: Gateway, names: Sequence[str], error: ChironError) -> None:
    """Save the output of the functions `names` to a file, and name the file in `error`."""
    lines: list[LogLine] = []
    for name in names:
        with suppress(ChironError):  # it was never deployed, or the gateway is gone
            lines += gateway.logs(name, _KEPT)
    if not lines:
        return
    with (
        suppress(OSError),  # the disk may be full
        tempfile.NamedTemporaryFile(
            "w", prefix="chiron-", suffix=".log", delete=False, encoding="utf-8"
        ) as file,
    ):
        file.writelines(f"{line}\n" for line in sort_by_time(lines))
        error.add(f"what was printed is in {file.name}")


def sort_by_time(lines: Iterable[LogLine]) -> list[str]:
    """Return lines of several functions in order of time, each with its time and function."""
    ordered = sorted(lines, key=lambda line: line.moment)
    return [f"{line.timestamp} {line.name} {line.text}" for line in ordered]


def parse_log_line(line: LogLine) -> LogEntry:
    """Split a log line of a wrap into its function, its execution and its text."""
    found = _PRINTED.search(line.text)
    if found is None:
        return LogEntry("", "", line.text)
    function, execution = found.groups(default="")
    return LogEntry(function, execution, line.text[found.end() :])


def failed_executions(lines: Iterable[LogLine]) -> list[FailedExecution]:
    """Return the failed executions in the logs of entry wraps, newest first."""
    newest_first = sorted(lines, key=lambda line: line.moment, reverse=True)
    told = ((line.timestamp, *parse_log_line(line)) for line in newest_first)
    return [
        FailedExecution(
            at=at, function=function, execution=execution, code=said[1], message=said[2]
        )
        for at, function, execution, text in told
        if function and (said := _FAILED.fullmatch(text))
    ]


def _explain(gateway: Gateway, error: ChironError) -> None:
    function = _concerned(error, gateway.functions())
    if function is None:
        return
    log = gateway.logs(function.name, TAIL)
    limit_mib = function.limits.memory_mib if function.limits else 0
    note = memory_note(error, function.name, read_functions(function), log, limit_mib)
    words = last_words(log)
    if note:
        error.add(note)
        if words and words not in error.message:
            error.add(words)


def _concerned(error: ChironError, deployed: Sequence[FunctionStatus]) -> FunctionStatus | None:
    """Return the function that `error` names, or the wrap of the function that it names."""
    words = set(re.findall(r"[\w-]+", error.message))
    named = [each for each in deployed if each.name in words]
    if named:
        return max(named, key=lambda each: len(each.name))
    holding = [each for each in deployed if set(error.functions) & set(read_functions(each))]
    return holding[0] if len(holding) == 1 else None

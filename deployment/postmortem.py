"""What is left of functions that failed: what mends it, in the error, and their logs, in a file."""

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

#: Lines of each function that are kept.
_KEPT = 2000
#: How a wrap begins a line: the function, and the execution where it is known.
_PRINTED = re.compile(r"\[([\w-]+)(?: ([\w-]+))?\] ")
#: What an entry wrap says then of an execution that failed: the error's code, and its message.
_FAILED = re.compile(r"failed with ([\w-]+): (.*)")


class Printed(NamedTuple):
    """A line of a log: the function and the execution that it is of, both empty where unknown."""

    function: str
    execution: str
    text: str


class FailedExecution(Document):
    """An execution that was answered with an error.

    ``at`` is RFC 3339, ``execution`` the beginning of its X-Call-Id; ``function`` is the one that
    failed, or else the wrap.
    """

    at: str
    function: str
    execution: str
    code: str
    message: str


@contextmanager
def explained(gateway: Gateway) -> Iterator[None]:
    """Errors of the block that come of a memory limit also say what mends it.

    They get the functions that ran there, the line of stack.yaml and the end of the log.
    """
    try:
        yield
    except ChironError as error:
        with suppress(ChironError):  # of the two errors the first one tells what is wrong
            _explain(gateway, error)
        raise


def keep_logs(gateway: Gateway, names: Sequence[str], error: ChironError) -> None:
    """Write what the functions `names` printed to a file that `error` then names."""
    lines: list[LogLine] = []
    for name in names:
        with suppress(ChironError):  # it was never deployed, or the gateway is gone
            lines += gateway.logs(name, _KEPT)
    if not lines:
        return
    with (
        suppress(OSError),  # there may be no room for it
        tempfile.NamedTemporaryFile(
            "w", prefix="chiron-", suffix=".log", delete=False, encoding="utf-8"
        ) as file,
    ):
        file.writelines(f"{line}\n" for line in in_order(lines))
        error.add(f"what was printed is in {file.name}")


def in_order(lines: Iterable[LogLine]) -> list[str]:
    """Lines of several functions in the order of time, each with its time and its function."""
    ordered = sorted(lines, key=lambda line: line.timestamp)
    return [f"{line.timestamp} {line.name} {line.text}" for line in ordered]


def printed(line: LogLine) -> Printed:
    """Whose line it is, as a wrap says it, and what is left of it."""
    found = _PRINTED.search(line.text)
    if found is None:
        return Printed("", "", line.text)
    function, execution = found.groups(default="")
    return Printed(function, execution, line.text[found.end() :])


def failed_executions(lines: Iterable[LogLine]) -> list[FailedExecution]:
    """The executions of which entry wraps say in their logs that they failed, the newest first."""
    told = ((line.timestamp, *printed(line)) for line in lines)
    found = [
        FailedExecution(
            at=at, function=function, execution=execution, code=said[1], message=said[2]
        )
        for at, function, execution, text in told
        if function and (said := _FAILED.fullmatch(text))
    ]
    return sorted(found, key=lambda each: each.at, reverse=True)


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
    """The function that `error` names or, where it names one within a wrap, that wrap."""
    words = set(re.findall(r"[\w-]+", error.message))
    named = [each for each in deployed if each.name in words]
    if named:
        return max(named, key=lambda each: len(each.name))
    holding = [each for each in deployed if set(error.functions) & set(read_functions(each))]
    return holding[0] if len(holding) == 1 else None

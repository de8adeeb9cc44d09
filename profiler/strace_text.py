"""Parse the output of ``strace -f -ttt -T -o FILE``: system calls with their times, by thread."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

_LINE = re.compile(r"(?P<tid>[0-9]{1,10}) +(?P<time>[0-9]{1,12}\.[0-9]{1,9}) (?P<event>.*)")
_COMPLETE = re.compile(
    r"(?P<name>\w+)\((?P<arguments>.*)\) += (?P<result>.*?)(?: <(?P<seconds>\d+\.\d+)>)?"
)
_UNFINISHED = re.compile(r"(?P<name>\w+)\((?P<arguments>.*?)<(?:unfinished|detached) \.\.\.>")
_RESUMED = re.compile(
    r"<\.\.\. (?P<name>\w+) resumed>(?P<arguments>.*)\) += (?P<result>.*?)"
    r"(?: <(?P<seconds>\d+\.\d+)>)?"
)
_EXIT = re.compile(r"\+\+\+ (?:exited with|killed by) .*")
_INTERRUPTED = re.compile(r"<\.\.\. resuming interrupted (\w+) \.\.\.>")


@dataclass(frozen=True)
class Call:
    """One system call of one thread."""

    tid: int
    name: str
    arguments: str
    #: Seconds of the wall clock; `end_s` is None if the trace ends before the call.
    start_s: float
    end_s: float | None
    #: The text after strace's equals sign; empty if the call did not end.
    result: str

    @property
    def failed(self) -> bool:
        """Whether it ended with an error, or did not end."""
        return not self.result or self.result.startswith(("-1 ", "?"))


@dataclass(frozen=True)
class Trace:
    """The system calls, by their start, and the end of each thread that ended."""

    calls: tuple[Call, ...]
    exits: dict[int, float]


def parse(text: str) -> Trace:
    """Return the trace in strace's output.

    Calls that strace split in two, because another thread's call came in between, are joined.
    Signals, and incomplete lines of a killed tracer, are ignored.
    """
    pending: dict[int, Call] = {}
    calls: list[Call] = []
    exits: dict[int, float] = {}
    for tid, time, event in _lines(text.splitlines()):
        if _EXIT.fullmatch(event):
            exits[tid] = time
        elif match := _RESUMED.fullmatch(event):
            started = pending.pop(tid, None)
            if started is not None:
                calls.append(_ended(started, match))
        elif match := _UNFINISHED.fullmatch(event):
            pending[tid] = Call(tid, _name(match), match["arguments"], time, None, "")
        elif match := _COMPLETE.fullmatch(event):
            calls.append(_ended(Call(tid, _name(match), "", time, None, ""), match))
    calls += pending.values()
    return Trace(tuple(sorted(calls, key=lambda call: call.start_s)), exits)


def _lines(lines: Iterable[str]) -> Iterable[tuple[int, float, str]]:
    for line in lines:
        if match := _LINE.fullmatch(line):
            yield int(match["tid"]), float(match["time"]), match["event"]


def _name(match: re.Match[str]) -> str:
    """Return the call's name; for a call resumed after a signal, the name of the resumed call."""
    interrupted = _INTERRUPTED.search(match["arguments"])
    return interrupted[1] if interrupted else match["name"]


def _ended(started: Call, match: re.Match[str]) -> Call:
    return Call(
        started.tid,
        started.name,
        started.arguments + match["arguments"],
        started.start_s,
        started.start_s + float(match["seconds"] or 0.0),
        match["result"],
    )

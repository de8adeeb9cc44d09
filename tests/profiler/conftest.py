"""Traces in few words, and a gateway to profile on."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from chiron.profiler.handler_run import HandlerRun, handler_runs
from chiron.profiler.strace_text import parse

#: (thread, start in ms, duration in ms, call with its arguments, result)
Line = tuple[int, float, float, str, str]

_BEGAN_S = 1_700_000_000.0


def _text(lines: list[Line]) -> str:
    return "\n".join(
        f"{tid} {_BEGAN_S + start / 1000:.6f} {call} = {result} <{duration / 1000:.6f}>"
        for tid, start, duration, call, result in lines
    )


@pytest.fixture(scope="session")
def handler_run() -> Callable[[float, list[Line]], HandlerRun]:
    """A run of thread 1 that lasts so many milliseconds and makes these calls."""

    def make(duration_ms: float, lines: list[Line]) -> HandlerRun:
        begin: Line = (1, -0.01, 0.01, 'access("/chiron/begin/0", F_OK)', "-1 ENOENT (x)")
        end: Line = (1, duration_ms, 0.02, 'access("/chiron/end/0", F_OK)', "-1 ENOENT (x)")
        (run,) = handler_runs(parse(_text([begin, *lines, end])))
        return run

    return make

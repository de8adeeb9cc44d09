"""Traces in few words, and a gateway to profile on."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator

import pytest

from cli.images import build_local
from gateway.embedded import EmbeddedGateway
from generator.launcher import Launcher
from openfaas.client import Gateway
from profiler.handler_run import HandlerRun, handler_runs
from profiler.permission import require_tracing
from profiler.strace_text import parse
from workflow.errors import ChironError

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


@pytest.fixture(scope="session")
def strace() -> str:
    """The path of strace, where this machine has it and allows tracing."""
    try:
        return require_tracing(os.environ)
    except ChironError as error:
        pytest.skip(error.message)


@pytest.fixture(scope="session")
def launcher(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Launcher]:
    """Deploys plans on an embedded gateway that these tests share."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("CHIRON_HOME", str(tmp_path_factory.mktemp("home")))
        with EmbeddedGateway() as embedded, Gateway(embedded.url) as gateway:
            yield Launcher(gateway, build_local)

"""When a deployed function is ready: when it answers itself, not when its gateway says so."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from urllib.parse import quote

from openfaas.objects import FunctionStatus, LogLine
from openfaas.transport import Transport
from workflow.errors import ChironError

#: Pause between two rounds of probes, in seconds.
INTERVAL_S = 0.05
#: Longest that one probe may take, in seconds; a starting function may accept and not answer.
PROBE_S = 5.0
#: Of its log: lines, and characters in all.
_LINES, _WORDS = 5, 600


def wait_ready(
    transport: Transport,
    describe: Callable[[str], FunctionStatus],
    logs: Callable[[str, int], Sequence[LogLine]],
    name: str,
    timeout_s: float,
) -> None:
    """Return once the function `name` answers.

    Raises
    ------
    ChironError
        ``not-ready`` after `timeout_s` seconds, with what the function answered last and the last
        lines of its log, or ``no-gateway``.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = deadline - time.monotonic()
        missing = _missing(transport, describe, name, min(PROBE_S, max(left_s, INTERVAL_S)))
        if missing is None:
            return
        if time.monotonic() + INTERVAL_S > deadline:
            raise ChironError(
                "not-ready",
                f"function {name} is not ready after {timeout_s:g} s ({missing}); "
                + _last_words(logs, name),
                functions=(name,),
                status=504,
            )
        time.sleep(INTERVAL_S)


def _last_words(logs: Callable[[str, int], Sequence[LogLine]], name: str) -> str:
    """The end of the function's log: whoever deployed it may remove it now, and the log with it."""
    with suppress(ChironError):
        lines = [line.text.strip() for line in logs(name, _LINES) if line.text.strip()]
        if lines:
            return f"its log ends: {' | '.join(lines)[-_WORDS:]}"
    return "it has no log: does its image exist, and has a node room for it?"


def _missing(
    transport: Transport,
    describe: Callable[[str], FunctionStatus],
    name: str,
    probe_s: float,
) -> str | None:
    """What the function still lacks to be ready, None for nothing.

    Two harmless probes, neither of which reaches a handler. ``GET /_/health`` is answered by this
    project's templates and by of-watchdog; the latter does so before the server behind it listens,
    so OPTIONS, which Flask answers by itself, has to come through too. Templates without
    ``/_/health`` have to have a replica instead.
    """
    path = f"/function/{quote(name, safe='')}"
    try:
        health = transport.function("GET", f"{path}/_/health", timeout_s=probe_s).status_code
        if health >= 500:
            return f"/_/health answers {health}"
        if health != 200 and describe(name).available_replicas < 1:
            return "it has no replica"
        settled = transport.function("OPTIONS", path, timeout_s=probe_s).status_code
    except ChironError as error:
        if error.code in ("timeout", "not-found"):
            return error.message
        raise
    return f"it answers {settled}" if settled >= 500 else None

"""When a deployed function is ready: when it answers itself, not when its gateway says so."""

from __future__ import annotations

import re
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Protocol
from urllib.parse import quote

from openfaas.endings import TAIL, by_memory, last_words
from openfaas.objects import FunctionStatus, GatewayInfo, LogLine
from openfaas.transport import Transport
from workflow.errors import ChironError

#: Pause between two rounds of probes, in seconds.
INTERVAL_S = 0.05
#: Longest that one probe may take, in seconds; a starting function may accept and not answer.
PROBE_S = 5.0
#: Where OpenFaaS keeps functions that are deployed without a namespace.
NAMESPACE = "openfaas-fn"
#: Characters that are shown of what it answers.
_SHOWN = 300
_MODULE = re.compile(r"No module named '([^']+)'")


class _Gateway(Protocol):
    def info(self) -> GatewayInfo: ...

    def describe(self, name: str) -> FunctionStatus: ...

    def logs(self, name: str, tail: int) -> Sequence[LogLine]: ...


def wait_ready(gateway: _Gateway, transport: Transport, name: str, timeout_s: float) -> None:
    """Return once the function `name` answers.

    Raises
    ------
    ChironError
        ``not-ready`` after `timeout_s` seconds, or once it has gone above its memory limit, with
        what the function answered last and the last lines of its log; or ``no-gateway``.
    """
    deadline = time.monotonic() + timeout_s
    while True:
        left_s = deadline - time.monotonic()
        missing = _missing(gateway, transport, name, min(PROBE_S, max(left_s, INTERVAL_S)))
        if missing is None:
            return
        late = time.monotonic() + INTERVAL_S > deadline
        if late or by_memory(missing):
            after = f" after {timeout_s:g} s" if late else ""
            raise ChironError(
                "not-ready",
                f"function {name} is not ready{after} ({missing}); {_last_words(gateway, name)}",
                functions=(name,),
                status=504,
            )
        time.sleep(INTERVAL_S)


def _last_words(gateway: _Gateway, name: str) -> str:
    """The end of the function's log: its deployer may remove it now, and the log with it."""
    with suppress(ChironError):
        words = last_words(gateway.logs(name, TAIL))
        if words:
            module = _MODULE.search(words)
            return f"add what has {module[1]} to its requirements.txt; {words}" if module else words
    with suppress(ChironError):
        function = gateway.describe(name)
        if not function.available_replicas and gateway.info().on_kubernetes:
            return (
                "it is pending: no node has room for what it requests, or its image cannot be "
                f"pulled: see {describe_line(name, function.namespace)}"
            )
    return "it has no log: does its image exist, and has a node room for it?"


def describe_line(name: str, namespace: str) -> str:
    """The command line that tells why Kubernetes does not start, or end, a function's pods."""
    return f"kubectl -n {namespace or NAMESPACE} describe pod -l faas_function={name}"


def _missing(gateway: _Gateway, transport: Transport, name: str, probe_s: float) -> str | None:
    """What the function still lacks to be ready, None for nothing.

    Two harmless probes, neither of which reaches a handler. ``GET /_/health`` is answered by this
    project's templates and by of-watchdog; the latter does so before the server behind it listens,
    so OPTIONS, which Flask answers by itself, has to come through too. Templates without
    ``/_/health`` have to have a replica instead.
    """
    path = f"/function/{quote(name, safe='')}"
    try:
        answer = transport.function("GET", f"{path}/_/health", timeout_s=probe_s)
        health = answer.status_code
        if health >= 500:
            said = " ".join(answer.text.split())[:_SHOWN]
            return f"/_/health answers {health}" + (f": {said}" if said else "")
        if health != 200 and gateway.describe(name).available_replicas < 1:
            return "it has no replica"
        settled = transport.function("OPTIONS", path, timeout_s=probe_s).status_code
    except ChironError as error:
        if error.code in ("timeout", "not-found"):
            return error.message
        raise
    return f"it answers {settled}" if settled >= 500 else None

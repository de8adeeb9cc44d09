"""When a function is ready: it answers itself, whatever its gateway says of it."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from itertools import count
from typing import TYPE_CHECKING

from requests import Response

from chiron.openfaas.endings import TAIL, FailedImports, by_memory, import_failed, last_words
from chiron.workflow.errors import ChironError

if TYPE_CHECKING:
    from chiron.openfaas.client import Gateway

#: Pause between two probes whether a function is ready, and the longest that one may take, in
#: seconds: a starting function may accept and not answer.
_PROBE_INTERVAL_S, _PROBE_S = 0.05, 5.0
#: So many probes fail between two looks at the log.
_PROBES_A_LOG = 10
#: Where OpenFaaS keeps functions that are deployed without a namespace.
_NAMESPACE = "openfaas-fn"
#: Characters that are shown of what a gateway or a function answers.
_SHOWN = 300
#: The fields in which JSON that tells of an error has a sentence for people.
_SENTENCES = ("message", "error_description", "error", "detail")
#: What the embedded gateway says of a function that has no replica but one that has ended.
_EXITED = "exited with status"
_MODULE = re.compile(r"No module named '([^']+)'")


def wait_ready(
    gateway: Gateway,
    name: str,
    timeout_s: float = 30.0,
    headers: Mapping[str, str] | None = None,
    *,
    answers_options: bool = True,
) -> None:
    """Return once the function `name` answers itself, whatever its `gateway` says of it.

    It is asked with `headers`, which say to a wrap of which build it has to be. Where not its
    server but its handler would answer OPTIONS, `answers_options` is false: its health counts.

    Raises ``not-ready`` after `timeout_s` seconds, or once it has gone above its memory limit,
    with what the function answered last and the last lines of its log; ``missing-package`` or
    ``import-failed`` once it has started in vain and its log tells of an import; ``no-gateway``.
    """
    deadline = time.monotonic() + timeout_s
    imports = FailedImports()
    for probe in count():
        probe_s = min(_PROBE_S, max(deadline - time.monotonic(), _PROBE_INTERVAL_S))
        missing = _missing(gateway, name, probe_s, headers, answers_options)
        if missing is None:
            return
        late = time.monotonic() + _PROBE_INTERVAL_S > deadline
        if late or by_memory(missing):
            after = f" after {timeout_s:g} s" if late else ""
            raise ChironError(
                "not-ready",
                f"function {name} is not ready{after} ({missing}); {_last_words(gateway, name)}",
                functions=(name,),
                status=504,
            )
        if probe % _PROBES_A_LOG == _PROBES_A_LOG - 1:
            _check_imports(gateway, name, imports, ended=_EXITED in missing)
        time.sleep(_PROBE_INTERVAL_S)


def describe_line(name: str, namespace: str) -> str:
    """The command line that tells what keeps a function's pods from ending."""
    return f"kubectl -n {namespace or _NAMESPACE} describe replicaset,pod -l faas_function={name}"


def events_line(name: str, namespace: str) -> str:
    """The command line that tells why Kubernetes does not make or start a function's pods.

    What could not be deployed is removed, and its events stay for an hour. A quota or a policy
    refuses a pod before it is there: that is an event of its replica set, which has the name too.
    """
    return f"kubectl -n {namespace or _NAMESPACE} get events | grep {name}"


def shown(answer: Response) -> str:
    """The beginning of what a gateway or a function answers, in one line: of JSON its sentence."""
    said = answer.text
    with suppress(ValueError):
        told = json.loads(said)
        fields = (told.get(name) for name in _SENTENCES) if isinstance(told, dict) else ()
        said = next((field for field in fields if field and isinstance(field, str)), said)
    return " ".join(said.split())[:_SHOWN]


def _missing(
    gateway: Gateway,
    name: str,
    probe_s: float,
    headers: Mapping[str, str] | None,
    answers_options: bool,
) -> str | None:
    """What the function still lacks to be ready, None for nothing.

    Two harmless probes, neither of which reaches a handler. ``GET /_/health`` is answered by
    this project's templates and by of-watchdog; the latter does so before the server behind it
    listens, so OPTIONS, which Flask answers by itself, has to come through too. Templates
    without ``/_/health`` have to have a replica instead.
    """
    try:
        answer = gateway.get(name, "/_/health", timeout_s=probe_s)
        if lacking := _lacks("/_/health", answer):
            return lacking
        if answer.status_code != 200 and gateway.describe(name).available_replicas < 1:
            return "it has no replica"
        if not answers_options:
            return None
        answer = gateway.options(name, headers, timeout_s=probe_s)
    except ChironError as error:
        if error.code in ("timeout", "not-found"):
            return error.message
        raise
    return _lacks("it", answer)


def _lacks(what: str, answer: Response) -> str | None:
    """What an answer to a probe says is wrong, None for nothing."""
    if answer.status_code < 500:
        return None
    said = shown(answer)
    return f"{what} answers {answer.status_code}" + (f": {said}" if said else "")


def _check_imports(gateway: Gateway, name: str, imports: FailedImports, *, ended: bool) -> None:
    try:
        log = gateway.logs(name, TAIL)
    except ChironError:
        return  # no log yet
    said = imports.last(log, ended=ended)
    if said is not None:
        raise import_failed(name, said, log)


def _last_words(gateway: Gateway, name: str) -> str:
    """The end of the function's log: its deployer may remove it now, and the log with it."""
    with suppress(ChironError):
        words = last_words(gateway.logs(name, TAIL))
        if words:
            module = _MODULE.search(words)
            mend = f"add what has {module[1]} to its requirements.txt; " if module else ""
            return mend + words
    with suppress(ChironError):
        function = gateway.describe(name)
        if not function.available_replicas and gateway.info().on_kubernetes:
            return (
                "it is pending: no node has room for what it requests, its image cannot be pulled, "
                f"or a quota or policy refuses it: see {events_line(name, function.namespace)}"
            )
    return "it has no log: does its image exist, and has a node room for it?"

"""Wait until a function is ready: until it answers, whatever its gateway reports."""

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

#: The pause between readiness probes and the timeout of a probe, in seconds: a starting function
#: may accept and not answer.
_PROBE_INTERVAL_S, _PROBE_S = 0.05, 5.0
#: The number of failed probes between two looks at the log.
_PROBES_A_LOG = 10
#: The namespace of functions that are deployed without one.
_NAMESPACE = "openfaas-fn"
#: The number of characters to show of an answer.
_SHOWN = 300
#: The fields of JSON errors that hold a sentence for people.
_SENTENCES = ("message", "error_description", "error", "detail")
#: The embedded gateway's message for a function whose only replica has ended.
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
    """Return once the function `name` itself answers, whatever its `gateway` reports.

    Probes carry `headers`, which tell a wrap the expected build. Set `answers_options` to false if
    OPTIONS would reach the handler: then its health counts.

    Raises ``not-ready`` after `timeout_s` seconds, or once it exceeds its memory limit, with its
    last answer and the last lines of its log; ``missing-package`` or ``import-failed`` once its log
    shows that it cannot start because of an import; ``no-gateway``.
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
    """Return the command line that shows why a function's pods do not end."""
    return f"kubectl -n {namespace or _NAMESPACE} describe replicaset,pod -l faas_function={name}"


def events_line(name: str, namespace: str) -> str:
    """Return the command line that shows why Kubernetes does not create or start a function's pods.

    A function that could not be deployed is removed; its events stay for an hour. If a quota or a
    policy refuses a pod, the event is its replica set's, which has the function's name too.
    """
    return f"kubectl -n {namespace or _NAMESPACE} get events | grep {name}"


def shown(answer: Response) -> str:
    """Return the beginning of an answer in one line; for JSON, the sentence of its error."""
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
    """Return what the function lacks to be ready; None if it is ready.

    Two harmless probes never reach a handler. The first, ``GET /_/health``, is answered by this
    project's templates and by of-watchdog. of-watchdog does so before the server behind it listens,
    so OPTIONS, which Flask answers by itself, must succeed too. Templates without ``/_/health``
    must have a replica instead.
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
    """Return the problem that an answer to a probe shows; None if there is none."""
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
    """Return the end of the function's log: the deployer may remove both now."""
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

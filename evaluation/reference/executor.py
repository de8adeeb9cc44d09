"""The reference executor: finds a workflow's answer in the simplest way that can be right.

One fresh process runs the handlers one after another, in the order of the stages. Its answer is the
oracle for every deployment, and it records the input of each inner function. It calls functions and
passes on their data by code of its own. The rules of state machines and of buckets are those of
wraps: ``tests/workflow/conformance`` compares machines with documented answers, and
``tests/workflow/test_execute_independent.py`` with another interpreter.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from chiron.workflow.data import text_of
from chiron.workflow.errors import ChironError, WorkflowFailedError
from chiron.workflow.model import Workflow
from chiron.workflow.tied import tied

_INHERITED = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "PYTHONPATH")


@dataclass(frozen=True)
class Handler:
    """A function's handler: its folder and its calling convention.

    ``flask`` is ``handle(req)`` as in python3-flask. ``http`` and ``http-debian`` are
    ``handle(event, context)`` as in python3-http and python3-http-debian. ``command`` runs the
    program and arguments in `command`; ``remote`` is called over HTTP at `url`. The program in
    `reference` calls handlers of other languages. ``environment`` has the function's variables from
    stack.yaml.
    """

    folder: Path
    style: str
    environment: Mapping[str, str]
    command: tuple[str, ...] = ()
    url: str = ""
    reference: tuple[str, ...] = ()


@dataclass(frozen=True)
class ReferenceRun:
    """The workflow's answer, and every task's input and outputs, encoded by `chiron.workflow.data`.

    If a task may run several times, TASK#2 is its second run.
    """

    output: str
    inputs: dict[str, str]
    outputs: dict[str, str]


def run_reference(
    workflow: Workflow,
    handlers: Mapping[str, Handler],
    request: bytes,
    *,
    environment: Mapping[str, str] | None = None,
    timeout_s: float = 120.0,
    triggers: Path | None = None,
) -> ReferenceRun:
    """Run `workflow` on `request` in a separate process, task after task.

    Args:
        handlers: a handler for every function of the workflow.
        environment: variables for all functions, such as ``gateway_url``. From this process's own
            environment they get only the variables that every program needs: others may be secrets.
        triggers: the folder of user-written triggers, if buckets have some.

    Raises WorkflowFailedError, ``workflow-failed``, or ``function-failed`` with the function's
    name; ``not-text`` as `chiron.workflow.data.resolve`; ``trigger-failed``; ``timeout``;
    ``reference-died`` if a handler ended the process.
    """
    job = _job(workflow, handlers, request, (triggers or Path()).resolve())
    answer = _answer(_ran(job, dict(environment or {}), timeout_s))
    if "failed" in answer:
        raise WorkflowFailedError(*answer["failed"])
    if "code" in answer:
        raise ChironError(answer["code"], answer["message"])
    if "function" in answer:
        raise WorkflowFailedError(
            answer["error"],
            answer["cause"],
            "function-failed",
            f"function {answer['function']} failed in the reference run: {answer['message']}",
            functions=[answer["function"]],
        )
    return ReferenceRun(**answer)


def _job(
    workflow: Workflow, handlers: Mapping[str, Handler], request: bytes, triggers: Path
) -> dict[str, Any]:
    return {
        "name": workflow.name,
        "machine": workflow.machine,
        "buckets": workflow.buckets,
        "triggers": str(triggers),
        "tasks": [
            {
                "name": t.name,
                "function": t.function,
                "source": t.source,
                "emits": workflow.emitted.get(t.name, ()),
                "streams": dict(t.streams),
            }
            for stage in workflow.stages
            for t in map(workflow.by_name.__getitem__, stage)
        ],
        "output": workflow.output,
        "handlers": {
            name: asdict(handlers[name]) | {"folder": str(handlers[name].folder.resolve())}
            for name in workflow.functions
        },
        "request": text_of(request),
    }


def _ran(
    job: dict[str, Any], environment: dict[str, str], timeout_s: float
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            # Neither import from the current folder nor leave bytecode in the users' folders.
            tied([sys.executable, "-P", "-B", "-m", "chiron.evaluation.reference.process"]),
            input=json.dumps(job, default=dict),
            capture_output=True,
            encoding="utf-8",
            errors="replace",  # handlers may print any bytes
            timeout=timeout_s,
            env={name: os.environ[name] for name in _INHERITED if name in os.environ} | environment,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise ChironError(
            "timeout", f"the reference run did not end within {timeout_s:g} s", status=504
        ) from None


def _answer(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    try:
        answer: dict[str, Any] = json.loads(done.stdout.rpartition("\n")[2])
    except ValueError:
        last = (done.stderr.strip().splitlines() or ["no output"])[-1]
        raise ChironError(
            "reference-died", f"the reference run ended with status {done.returncode}: {last}"
        ) from None
    return answer

"""The verb `invoke`: runs a deployed workflow, whoever calls its wraps."""

from __future__ import annotations

import json
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import groupby, repeat
from typing import Self
from uuid import uuid4

from deployment.caller import Caller, Reply
from generator.annotations import (
    PLANNER,
    ROLE,
    WORKFLOW,
    DeployedPrediction,
    TaskFlow,
    answering,
    read_flow,
    read_prediction,
)
from generator.declaration import NumberedSource
from generator.settings import client_timeout_s
from openfaas.client import Gateway
from workflow.data import request_text, resolve
from workflow.errors import ChironError
from workflow.model import Source
from workflow.tracing import KEY_ANNOTATION, Row, Traced, trace_header

#: The roles of functions that clients call.
_CALLED = ("entry", "task")
#: Characters of a function's own words that an error repeats.
_SHOWN = 300


@dataclass(frozen=True)
class Answer:
    """A workflow's answer: its output, the client's latency, the wrap's timeline if asked for."""

    output: str
    latency_ms: float
    timeline: list[Row] = field(default_factory=list)


class Invoker(ABC):
    """Runs one deployed workflow; a context manager that closes its connections.

    ``prediction`` is what was predicted of its plan, where that is known.
    """

    def __init__(self, url: str, timeout_s: float, prediction: DeployedPrediction | None) -> None:
        self.prediction = prediction
        self._caller = Caller(url, timeout_s)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._caller.close()

    @abstractmethod
    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        """The workflow's answer to `request`; ``function-failed`` and the like where it fails."""


class EntryInvoker(Invoker):
    """Hands the request to the entry wrap, which runs the workflow.

    It tells its timeline to those who know the `trace_key` of its build.
    """

    def __init__(
        self,
        url: str,
        entry: str,
        timeout_s: float = 60.0,
        trace_key: str = "",
        prediction: DeployedPrediction | None = None,
    ) -> None:
        super().__init__(url, timeout_s, prediction)
        self._entry = entry
        self._trace_key = trace_key

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        """The workflow's answer to `request`; ``not-traced`` where the wrap knows another key."""
        headers = trace_header(self._trace_key) if trace else None
        reply = self._caller.call(self._entry, request, headers)
        text = _text(self._entry, reply)
        if not trace:
            return Answer(text, reply.latency_ms)
        try:
            traced: Traced = json.loads(text)
            return Answer(traced["output"], reply.latency_ms, traced["timeline"])
        except (ValueError, TypeError, LookupError):
            message = f"{self._entry} was not deployed with this key for traces: deploy it again"
            raise ChironError("not-traced", message, functions=[self._entry]) from None


class ClientInvoker(Invoker):
    """Calls every task's function itself, the tasks of a stage at once: planner one-to-one.

    `flows` has the place of each function's task.
    """

    def __init__(
        self,
        url: str,
        flows: Mapping[str, TaskFlow],
        timeout_s: float = 60.0,
        prediction: DeployedPrediction | None = None,
    ) -> None:
        super().__init__(url, timeout_s, prediction)
        ordered = sorted(flows.items(), key=lambda item: (item[1].stage, item[1].task))
        self._stages = [list(g) for _, g in groupby(ordered, key=lambda item: item[1].stage)]
        self._output = ordered[0][1].output
        self._fail = ordered[0][1].fail
        self._threads = ThreadPoolExecutor(max(map(len, self._stages)))

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        super().__exit__()

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        """The workflow's answer to `request`; there is no timeline, as no wrap sees the whole."""
        start = time.perf_counter()
        text = request_text(request)
        outputs: dict[str, str] = {}
        headers = {"X-Call-Id": str(uuid4())}  # one for all: what they print is of one execution
        for stage in self._stages:
            bodies = [resolve(_named(flow.source), text, outputs).encode() for _, flow in stage]
            names = [name for name, _ in stage]
            for (name, flow), reply in zip(
                stage, self._call_all(names, bodies, headers), strict=True
            ):
                outputs[str(flow.task)] = _text(name, reply)
        if self._fail is not None:
            raise ChironError("workflow-failed", ": ".join(self._fail), status=500)
        output = resolve(_named(self._output), text, outputs)
        return Answer(output, (time.perf_counter() - start) * 1000)

    def _call_all(
        self, names: Sequence[str], bodies: Sequence[bytes], headers: Mapping[str, str]
    ) -> list[Reply]:
        if len(names) == 1:
            return [self._caller.call(names[0], bodies[0], headers)]
        return list(self._threads.map(self._caller.call, names, bodies, repeat(headers)))


def find_invoker(gateway: Gateway, workflow: str, planner: str | None = None) -> Invoker:
    """What runs the workflow named `workflow` on `gateway`, found by the functions' annotations.

    Raises ``not-deployed``, or ``ambiguous`` where several planners of it are deployed.
    """
    functions = gateway.functions()
    called = [
        function
        for function in functions
        if function.annotations.get(ROLE) in _CALLED
        and function.annotations.get(WORKFLOW) == workflow
        and planner in (None, function.annotations.get(PLANNER, ""))
    ]
    if not called:
        what = f"workflow {workflow}" + (f" as {planner}" if planner else "")
        raise ChironError(
            "not-deployed",
            f"{what} is not deployed on {gateway.url}: chiron deploy does that",
            status=404,
        )
    planners = sorted({function.annotations.get(PLANNER, "") for function in called})
    if len(planners) > 1:
        there = ", ".join(planners)
        raise ChironError(
            "ambiguous", f"workflow {workflow} is deployed as {there}: choose one with --planner"
        )
    entry = next((f for f in called if f.annotations.get(ROLE) == "entry"), None)
    timeout_s = client_timeout_s((entry or called[0]).env_vars)
    predictions = (read_prediction(answering(f, functions).annotations) for f in called)
    prediction = next(filter(None, predictions), None)
    if entry:
        key = entry.annotations.get(KEY_ANNOTATION, "")
        return EntryInvoker(gateway.url, entry.name, timeout_s, key, prediction)
    flows = {f.name: read_flow(f.annotations) for f in called}
    return ClientInvoker(gateway.url, flows, timeout_s, prediction)


def _named(source: NumberedSource) -> Source:
    """A numbered source in the form that `resolve` takes, with the numbers as names."""
    if source is None:
        return None
    return str(source) if isinstance(source, int) else tuple(map(str, source))


def _text(name: str, reply: Reply) -> str:
    """The reply's body; an error reply becomes the ChironError that it tells of."""
    if reply.status == 200:
        return reply.body.decode()
    try:
        told = json.loads(reply.body)
        code, message = str(told["code"]), str(told["message"])
        function = str(told.get("function") or name)
    except (ValueError, TypeError, LookupError):
        shown = reply.body.decode(errors="replace").strip() or "no body"
        code, message, function = "function-failed", f"status {reply.status}: {shown}", name
    raise ChironError(
        code,
        f"function {function} failed: {' '.join(message.split())[:_SHOWN]}",
        functions=[function],
        status=reply.status if reply.status >= 500 else 502,
    )

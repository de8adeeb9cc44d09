"""The verb `invoke`: runs a deployed workflow, whoever calls its wraps."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import groupby
from typing import NamedTuple, Self
from uuid import uuid4

from deployment.caller import Caller, Reply
from generator.annotations import (
    PLANNER,
    ROLE,
    WORKFLOW,
    DeployedPrediction,
    answering,
    read_flow,
    read_prediction,
)
from generator.declaration import NumberedSource
from generator.settings import client_timeout_s
from openfaas.client import Gateway
from openfaas.objects import FunctionStatus
from workflow.data import bytes_of, resolve, text_of
from workflow.errors import ChironError
from workflow.model import Source, Workflow
from workflow.plan import Plan
from workflow.tracing import KEY_ANNOTATION, Row, Traced, trace_header

#: The roles of functions that clients call.
_CALLED = ("entry", "task")
#: Characters of a function's own words that an error repeats.
_SHOWN = 300


class Call(NamedTuple):
    """One call of a function: its body is what `source` stands for, its answer `task`'s output."""

    function: str
    task: str
    source: Source


class Route(NamedTuple):
    """The calls of a request, stage by stage, and which of their answers are the workflow's.

    ``fail`` is error and cause where the workflow ends in a Fail state that the client has to see
    to.
    """

    stages: Sequence[Sequence[Call]]
    output: Source
    fail: Sequence[str] | None = None


class Timeline(NamedTuple):
    """What a wrap did: its rows, and when its clock began on the client's, in milliseconds."""

    begin_ms: float
    rows: list[Row]


@dataclass(frozen=True)
class Answer:
    """A workflow's answer: its output, the client's latency, what wraps did where that was asked.

    ``timelines`` has every wrap that the client called.
    """

    output: str
    latency_ms: float
    timelines: tuple[Timeline, ...] = ()

    @property
    def timeline(self) -> list[Row]:
        """That of the one wrap that sees all; nothing where the client called several."""
        return self.timelines[0].rows if len(self.timelines) == 1 else []


class Invoker:
    """Runs one deployed workflow along its `route`; a context manager that closes its connections.

    Wraps tell their timelines to those who know the `trace_key` of their build. ``prediction`` is
    what was predicted of the plan, where that is known.
    """

    def __init__(
        self,
        url: str,
        route: Route,
        timeout_s: float = 60.0,
        trace_key: str = "",
        prediction: DeployedPrediction | None = None,
    ) -> None:
        self.route = route
        self.prediction = prediction
        self._caller = Caller(url, timeout_s)
        self._trace_key = trace_key
        self._threads = ThreadPoolExecutor(max(map(len, route.stages)))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown()
        self._caller.close()

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        """The workflow's answer to `request`; the calls of a stage are made at once.

        Raises ``function-failed`` and the like where it fails; ``not-traced`` where a wrap knows
        another key.
        """
        start = time.perf_counter()
        text, outputs, timelines = text_of(request), dict[str, str](), list[Timeline]()
        # One id for all: what they print is of one execution.
        headers = {"X-Call-Id": str(uuid4())} | (trace_header(self._trace_key) if trace else {})

        def called(call: Call) -> tuple[float, Reply]:
            body = bytes_of(resolve(call.source, text, outputs))
            begun_ms = (time.perf_counter() - start) * 1000
            return begun_ms, self._caller.call(call.function, body, headers)

        for stage in self.route.stages:
            # One call alone does without the way to another thread and back.
            found = self._threads.map(called, stage) if len(stage) > 1 else map(called, stage)
            for call, (begun_ms, reply) in zip(stage, list(found), strict=True):
                output = _text(call.function, reply)
                if trace:
                    output, timeline = _traced(call.function, output, begun_ms, reply)
                    timelines.append(timeline)
                outputs[call.task] = output
        if self.route.fail is not None:
            raise ChironError("workflow-failed", ": ".join(self.route.fail), status=500)
        output = resolve(self.route.output, text, outputs)
        # A single call is all that there is: what the client does around it is none of its time.
        taken_ms = (time.perf_counter() - start) * 1000 if len(outputs) > 1 else reply.latency_ms
        return Answer(output, taken_ms, tuple(timelines))


def route_of(plan: Plan, workflow: Workflow) -> Route:
    """The route of `plan`: one call of the entry wrap, or one a task where the client calls."""
    if plan.orchestrator != "client":
        return _through(plan.wraps[0].name)
    wrap_of = {wrap.tasks[0]: wrap.name for wrap in plan.wraps}
    stages = [
        [Call(wrap_of[task], task, workflow.by_name[task].source) for task in stage]
        for stage in workflow.stages
    ]
    failure = workflow.failure
    return Route(stages, workflow.output, (failure.error, failure.cause) if failure else None)


def _through(entry: str) -> Route:
    """The route through the wrap that runs all of the workflow."""
    return Route([[Call(entry, entry, None)]], entry)


def _annotated(functions: Iterable[FunctionStatus]) -> Route:
    """The route that the tasks' functions tell of; its tasks are called by their numbers."""
    flows = [(read_flow(function.annotations), function.name) for function in functions]
    ordered = sorted(flows, key=lambda item: (item[0].stage, item[0].task))
    stages = [
        [Call(name, str(flow.task), _named(flow.source)) for flow, name in stage]
        for _, stage in groupby(ordered, key=lambda item: item[0].stage)
    ]
    first = ordered[0][0]
    return Route(stages, _named(first.output), first.fail)


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
    key = (entry or called[0]).annotations.get(KEY_ANNOTATION, "")
    route = _through(entry.name) if entry else _annotated(called)
    return Invoker(gateway.url, route, timeout_s, key, prediction)


def _named(source: NumberedSource) -> Source:
    """A numbered source in the form that `resolve` takes, with the numbers as names."""
    if source is None:
        return None
    return str(source) if isinstance(source, int) else tuple(map(str, source))


def _traced(function: str, text: str, begun_ms: float, reply: Reply) -> tuple[str, Timeline]:
    """The output in the answer to a traced call that was `begun_ms` after the request, and more."""
    try:
        traced: Traced = json.loads(text)
        output, rows = traced["output"], traced["timeline"]
        ended_ms = max((row["end_ms"] for row in rows), default=0.0)
    except (ValueError, TypeError, LookupError):
        message = f"{function} was not deployed with this key for traces: deploy it again"
        raise ChironError("not-traced", message, functions=[function]) from None
    # The wrap's clock starts when it has the request: half of what is not inside of it.
    return output, Timeline(begun_ms + (reply.latency_ms - ended_ms) / 2, rows)


def _text(name: str, reply: Reply) -> str:
    """The reply's body; an error reply becomes the ChironError that it tells of."""
    if reply.status == 200:
        return text_of(reply.body)
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

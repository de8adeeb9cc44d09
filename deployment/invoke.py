"""The verb `invoke`: runs a deployed workflow, whether the client or a wrap calls its functions."""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from itertools import groupby
from types import MappingProxyType
from typing import Any, Self
from uuid import uuid4

from chiron.deployment.caller import CONNECTIONS, Caller
from chiron.deployment.deployed import not_deployed
from chiron.deployment.function_error import function_error
from chiron.deployment.route import (
    CallRequest,
    Route,
    StagedRoute,
    TaskCall,
    entry_route,
    state_machine_route,
)
from chiron.generator.annotations import (
    PLANNER,
    ROLE,
    WORKFLOW,
    DeployedPrediction,
    answering,
    read_flow,
    read_machine,
    read_prediction,
)
from chiron.generator.settings import client_timeout_s
from chiron.openfaas.client import Gateway
from chiron.openfaas.objects import FunctionStatus
from chiron.workflow.data import Typed, text_of
from chiron.workflow.errors import ChironError
from chiron.workflow.model import NOTHING, Source, Stream, Task
from chiron.workflow.timeline import Span, Timeline, Traced, in_order
from chiron.workflow.tracing import KEY_ANNOTATION, trace_header
from chiron.workflow.units import LONGEST_S
from chiron.wrap.core.declaration import NumberedSource

#: The lowest HTTP status of a failure.
_FAILED = 400
#: The roles of the functions that a client calls.
_CALLED = ("entry", "task")


@dataclass(frozen=True)
class Answer:
    """A workflow's answer: its output, the client's latency and, if asked for, timelines.

    ``timelines`` has the timeline of every wrap that the client called, by its clock.
    """

    output: str
    latency_ms: float
    timelines: tuple[Timeline, ...] = ()

    @property
    def timeline(self) -> Timeline:
        """The timeline of the request, which must have been traced."""
        first, *others = self.timelines
        spans = in_order(span for each in self.timelines for span in each.spans)
        arrived_ms = 0.0 if others else first.arrived_ms
        return first.model_copy(
            update={"arrived_ms": arrived_ms, "latency_ms": self.latency_ms, "spans": spans}
        )


class Invoker:
    """Runs one deployed workflow along its `route`; a context manager that closes its connections.

    Wraps return their timelines only to holders of their build's `trace_key`. ``prediction`` is the
    plan's prediction, if known. `options` are the `pool_options` of the gateway.
    """

    def __init__(
        self,
        url: str,
        route: Route,
        timeout_s: float = 60.0,
        trace_key: str = "",
        prediction: DeployedPrediction | None = None,
        options: Mapping[str, Any] = MappingProxyType({}),
    ) -> None:
        self.route = route
        self.prediction = prediction
        self._caller = Caller(url, timeout_s, options)
        self._trace_key = trace_key
        # Several requests may run at once; the pool starts a thread only if none is idle.
        self._threads = ThreadPoolExecutor(max(route.most_at_once, CONNECTIONS))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._threads.shutdown(wait=False, cancel_futures=True)  # nobody awaits the running calls
        self._caller.close()

    def invoke(self, request: bytes, *, trace: bool = False) -> Answer:
        """Run the route with `request`; return the workflow's answer.

        Raises the error of a failed call (``function-failed``); ``not-traced`` for another build's
        key.
        """
        trace_key = self._trace_key if trace else None
        calls = _Calls(self._caller, self._threads, trace_key, self.route.is_one_call)
        steps = self.route.follow(request, calls.begin)
        try:
            waits = next(steps)
            while True:
                waits = steps.send(calls.ended(*waits))
        except StopIteration as end:
            output: str = end.value
        # The latency of a single call excludes the client's own work around the call.
        taken_ms = calls.last_ms if self.route.is_one_call else calls.now_ms
        return Answer(output, taken_ms, tuple(calls.timelines))


class _Calls:
    """The calls of one request, each on a thread; without `trace_key` they are not traced."""

    def __init__(
        self, caller: Caller, threads: ThreadPoolExecutor, trace_key: str | None, is_one_call: bool
    ) -> None:
        self._caller = caller
        self._threads = threads
        self._traced, self._is_one_call = trace_key is not None, is_one_call
        # One id: all output belongs to one execution. In a wrap with buckets, the request's events
        # get buckets of their own, and their results are the answer.
        self._headers = {"X-Call-Id": str(uuid4()), "X-Chiron-Alone": "1"}
        if not is_one_call:  # a single call's trace begins in the wrap
            self._headers["traceparent"] = _traceparent()
        if trace_key is not None:
            self._headers |= trace_header(trace_key)
        self._start = time.perf_counter()
        self._requested: dict[Future[str], CallRequest] = {}
        self.last_ms = 0.0
        self.timelines = list[Timeline]()

    @property
    def now_ms(self) -> float:
        """Milliseconds since the request began."""
        return (time.perf_counter() - self._start) * 1000

    def begin(self, request: CallRequest) -> Future[str]:
        """Register a call, which starts when it is waited for."""
        future = Future[str]()
        self._requested[future] = request
        return future

    def ended(
        self, futures: Collection[Future[str]], timeout_s: float | None
    ) -> Collection[Future[str]]:
        """Return the calls that have ended when the first of them has, or after `timeout_s`.

        After `LONGEST_S`, the longest wait of a thread, possibly none has ended.
        """
        timeout_s = None if timeout_s is None else min(timeout_s, LONGEST_S)
        if len(futures) == len(self._requested) == 1 and timeout_s is None:
            # A call that is alone runs here, without a switch to another thread and back.
            self._call(*self._requested.popitem())
            return list(futures)
        for future, request in self._requested.items():
            self._threads.submit(self._call, future, request)
        self._requested.clear()
        if not futures:
            time.sleep(timeout_s or 0.0)
        return wait(futures, timeout_s, FIRST_COMPLETED).done

    def _call(self, future: Future[str], request: CallRequest) -> None:
        try:
            future.set_result(self._answer(request))
        except Exception as error:
            future.set_exception(error)

    def _answer(self, request: CallRequest) -> str:
        # The timeline of a single call starts with the call.
        begun_ms = 0.0 if self._is_one_call else self.now_ms
        reply = self._caller.call(request.function, request.body, self._headers, request.timeout_s)
        self.last_ms = reply.latency_ms
        if reply.status >= _FAILED:
            raise function_error(request.function, reply.status, reply.body)
        output = Typed(text_of(reply.body), reply.content_type)
        if self._traced:
            traced = _traced(request.function, output)
            timeline = traced.timeline.seen_by_client(begun_ms, reply.latency_ms)
            if not self._is_one_call:
                timeline = _called(request.function, timeline, begun_ms)
            self.timelines.append(timeline)
            output = Typed(traced.output, traced.content_type)
        return output


def _traceparent() -> str:
    """Return the traceparent of a new trace, common to all wraps' spans (W3C Trace Context)."""
    return f"00-{os.urandom(16).hex()}-{os.urandom(8).hex()}-01"


def _annotated_route(workflow: str, functions: Sequence[FunctionStatus]) -> Route:
    """Return the route in the annotations of the tasks' functions; their numbers name the tasks."""
    flows = [(read_flow(function.annotations), function.name) for function in functions]
    machine = next(filter(None, (read_machine(each.annotations) for each in functions)), None)
    if machine is not None:
        definition, tasks = machine
        function_of = {tasks[flow.task]: name for flow, name in flows}
        return state_machine_route(workflow, definition, function_of)
    ordered = sorted(flows, key=lambda item: (item[0].stage, item[0].task))
    stages = [
        [
            TaskCall(
                Task(
                    str(flow.task),
                    name,
                    _named(flow.source),
                    tuple(Stream(each, str(number)) for each, number in flow.streams.items()),
                ),
                {each: str(number) for each, number in flow.emits.items()},
            )
            for flow, name in stage
        ]
        for _, stage in groupby(ordered, key=lambda item: item[0].stage)
    ]
    first = ordered[0][0]
    return StagedRoute(stages, _named(first.output), first.fail)


def find_invoker(gateway: Gateway, workflow: str, planner: str | None = None) -> Invoker:
    """Return the invoker of `workflow` on `gateway`; raises ``not-deployed``, ``ambiguous``."""
    functions = gateway.functions()
    every = [each for each in functions if each.annotations.get(ROLE) in _CALLED]
    called = [
        function
        for function in every
        if function.annotations.get(WORKFLOW) == workflow
        and planner in (None, function.annotations.get(PLANNER, ""))
    ]
    if not called:
        others = sorted(each.annotations.get(WORKFLOW, "") for each in every)
        raise not_deployed(gateway, workflow, planner, filter(None, others))
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
    route = entry_route(entry.name) if entry else _annotated_route(workflow, called)
    return Invoker(gateway.url, route, timeout_s, key, prediction, gateway.pool_options)


def _named(source: NumberedSource) -> Source:
    """Return a numbered source in the form for `resolve`, with the numbers as names."""
    if source is None:
        return None
    if isinstance(source, int):
        return str(source)
    return tuple(map(str, source)) or NOTHING


def _traced(function: str, text: str) -> Traced:
    try:
        return Traced.model_validate_json(text)
    except ValueError:
        message = f"{function} was not deployed with this key for traces: deploy it again"
        raise ChironError("not-traced", message, functions=[function]) from None


def _called(wrap: str, timeline: Timeline, begun_ms: float) -> Timeline:
    """Return `timeline` with the transfer from the client to its wrap."""
    way = Span(kind="transfer", start_ms=begun_ms, end_ms=timeline.arrived_ms, wrap=wrap)
    return timeline.model_copy(update={"spans": (way, *timeline.spans)})

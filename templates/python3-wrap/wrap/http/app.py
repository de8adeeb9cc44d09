"""The WSGI application of a wrap: the workflow's requests, and calls of other wraps."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache, partial
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from wrap.cluster import store_path
from wrap.cluster.coordinator import Coordinator
from wrap.cluster.participant import Participant, engine_of
from wrap.core import admission
from wrap.core.builds import OTHER_BUILD, build_of, check_caller, is_handed_back
from wrap.core.dag import Engine, Part
from wrap.core.errors import TaskError, workflow_failed
from wrap.core.placement import Deciding
from wrap.core.program import Key, Program, keys
from wrap.core.wrap_spec import Entry, Seen, Wrap
from wrap.dispatch.execution import Execution
from wrap.dispatch.runtime import Runtime
from wrap.dispatch.world import WORLD
from wrap.functions.answers import METHODS
from wrap.functions.styles import UNSAID, unless_failed
from wrap.http.answering import Answering
from wrap.http.answers import asked_by, export, failed, lack, not_begun, passed_back, traced
from wrap.http.controls import controls
from wrap.http.handing_on import NOT_TAKEN, can_be_taken, hander_of
from wrap.http.probes import View, probes
from wrap.http.request_fields import (
    ALONE,
    BUILD,
    CALL,
    CALL_ID,
    HANDED,
    TIMEOUT,
    Environ,
    asked_mark,
    body_of,
    mark_of,
    request_of,
    seconds_of,
    trace_of,
    watch_of,
)
from wrap.http.response import Response
from wrap.http.server.connection import ARRIVED, LATER, REQUEST_OF
from wrap.net import framing
from wrap.net.gateway_client import CONTENT_TYPE, answer
from wrap.net.messages import UNWATCHED, Ident, Result
from wrap.net.peer_server import PeerServer
from wrap.observe import trace_context
from wrap.values.in_json import from_json
from wrap.values.value import FIELDS, JSON, Object
from wrap.workers.pulse import Pulse

if TYPE_CHECKING:
    from wrap.dispatch.sessions import Events

#: Hosts that Flask does not refuse.
_HOST = re.compile(r"([\w-]{1,63}(\.[\w-]{1,63})*|\[[\da-f:.]+\])(:\d+)?", re.ASCII).fullmatch
#: The key of a header by which Flask refuses requests for a websocket.
_UPGRADE = "HTTP_UPGRADE"


def create_app(
    runtime: Runtime,
    pulse: Pulse,
    listener: PeerServer | None = None,
    events: Events | None = None,
    participant: Participant | None = None,
) -> Callable[..., Iterable[Any]]:
    """Return the application of a wrap that is ready to run.

    It is healthy as long as the event loop turns, which `pulse` observes. With `events`, requests
    are events for buckets. If other wraps call it directly, `listener` accepts their connections
    and `participant` answers their calls.
    """
    entry = runtime.wrap.entry
    whole = None
    if entry is not None and entry.machine is None:
        gives = {key for key in keys(entry.output) if key is not None}.union(entry.emits.values())
        wrap = runtime.wrap
        graph = wrap.graph if wrap.remotes else wrap.live_graph
        whole = graph.part(wrap.place_of, gives)

    methods = _methods(entry)

    def run(environ: Environ) -> Response | None:
        """Answer a request; return None if the answer comes later."""
        arrived = environ.get(ARRIVED) or time.monotonic()
        try:
            seconds = seconds_of(environ.get(TIMEOUT))
            deadline = admission.deadline_of(arrived, runtime.wrap.timeout_s, seconds)
            admission.check_time(time.monotonic(), deadline)
            if runtime.wrap.entry is None and CALL in environ:
                _call(runtime, environ, arrived, deadline)
                return None
            return _workflow(runtime, environ, whole, events, arrived, deadline)
        except TaskError as error:
            return not_begun(runtime, environ, error, arrived)
        except Exception as error:  # no thread, descriptor or memory was left
            return not_begun(runtime, environ, lack(error), arrived)

    views = probes(runtime, pulse, listener, events, participant)
    views |= controls(runtime, events, methods)
    views |= {(method, "/"): run for method in methods}
    routed = cache(partial(_by_flask, views, run, methods))

    def application(environ: Environ, start_response: Any) -> Iterable[Any]:
        """Most requests have a path, method, host and protocol that need no routing by Flask."""
        method = environ["REQUEST_METHOD"]
        view = views.get(("GET" if method == "HEAD" else method, environ["PATH_INFO"]))
        if view is None or _UPGRADE in environ or not _HOST(environ.get("HTTP_HOST", "")):
            return routed()(environ, start_response)
        response = view(environ)
        return () if response is None else response(environ, start_response)

    return application


def _by_flask(
    views: Mapping[tuple[str, str], View], run: View, methods: list[str]
) -> Callable[..., Iterable[Any]]:
    """Return the application for other paths, hosts and protocols, which Flask interprets."""
    from flask import Flask, request

    app = Flask("wrap")

    def add(path: str, served: Mapping[str, View]) -> None:
        def answer(**_: str) -> Any:
            view = served["GET" if request.method == "HEAD" else request.method]
            return view(request.environ) or app.response_class()

        app.add_url_rule(path, path, answer, methods=served)

    for path in dict.fromkeys(path for _, path in views):
        add(path, {method: view for (method, place), view in views.items() if place == path})
    add("/<path:path>", dict.fromkeys(methods, run))
    return app


def _methods(entry: Entry | None) -> list[str]:
    """Return the methods that the templates of all functions that get the request serve."""
    if entry is None or entry.buckets is not None:  # no function gets the request
        return ["POST"]
    served = [METHODS.get(style, METHODS["http"]) for style in entry.styles]
    return [each for each in METHODS["http"] if all(each in its for its in served)]


def _workflow(
    runtime: Runtime,
    environ: Environ,
    whole: Part | None,
    events: Events | None,
    arrived: float,
    deadline: float,
) -> Response | None:
    """Answer a request of the workflow; return None if the answer comes later."""
    entry = runtime.wrap.entry
    if entry is None:
        message = f"this wrap only runs a part of {runtime.wrap.workflow}: call its entry wrap"
        raise TaskError("not-an-entry", message, status=400)
    if fields := environ[REQUEST_OF].fields:
        environ[FIELDS] = fields
    handers = environ.get(HANDED, "")
    if is_handed_back(build_of(runtime.trace_key), handers):
        return _not_taken(runtime)
    if target := runtime.route.target:
        asked = asked_by(environ, body_of(environ))
        return passed_back(runtime.transport.forward(target, asked, deadline))
    body = body_of(environ)
    admission.check_size(len(body), runtime.most_request)
    given = Object(body, environ.get("CONTENT_TYPE", ""))
    if runtime.wrap.remotes or any(each.sees_head for each in runtime.functions.values()):
        given.head = dict(environ)
    if events is not None:
        _events(runtime, environ, events, given, arrived, deadline)
        return None
    called = environ.get(CALL_ID, "")
    objects = _given(runtime.wrap, given)
    trace = trace_of(environ, runtime.spans is not None)
    ident = Ident(watch_of(environ, runtime.trace_key), mark_of(called), trace=trace)
    coordinator = None
    engine: Program
    if whole is None:
        ident_of = called or str(uuid4())
        bounds = runtime.longest, runtime.most_state
        engine = Deciding(runtime.wrap, entry, ident_of, deadline, WORLD, *bounds)
    elif coordinator := _coordinator(runtime, whole.gives, ident, deadline):
        tasks = frozenset(runtime.wrap.tasks)
        engine = Engine(runtime.wrap.share_of(tasks, whole.gives & tasks))
    else:
        engine = Engine(whole)
    if handers and coordinator is None and not can_be_taken(runtime, deadline):
        return _not_taken(runtime)
    if coordinator is not None and runtime.store is not None and None in runtime.wrap.crossing:
        store_path.put(runtime.store, ident.number, {None: objects[None]}, deadline)
    respond = partial(_answer, runtime, entry, arrived)
    hander = hander_of(runtime, environ, body, deadline)
    answering = Answering(runtime, environ, ident, arrived, deadline, respond, hander)
    answering.execute(engine, objects, coordinator)
    return None


def _not_taken(runtime: Runtime) -> Response:
    """Return the answer that leaves a request to the entry that handed it on."""
    refusal = {"code": OTHER_BUILD, "wrap": runtime.wrap.name}
    return Response(json.dumps(refusal), NOT_TAKEN, content_type=JSON)


def _given(wrap: Wrap, request: Object) -> dict[Key, Object]:
    """Return the objects of a request; for a task called by itself, also its streams."""
    named = (each for its in wrap.streams.values() for each in its.items())
    with_request = {name: number for name, number in named if number < 0}
    if not with_request:
        return {None: request}
    try:
        told = json.loads(request.text())
        found: dict[Key, Object] = {None: Object(from_json(told["input"]))}
        streams = {name: Object(from_json(told["streams"][name])) for name in with_request}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        names = ", ".join(with_request)
        message = (
            f'the request has to be {{"input": ..., "streams": ...}} with {names}, '
            'each a text or {"base64": ...}'
        )
        raise TaskError("bad-request", message, status=400) from None
    return found | {with_request[name]: each for name, each in streams.items()}


def _events(
    runtime: Runtime,
    environ: Environ,
    events: Events,
    given: Object,
    arrived: float,
    deadline: float,
) -> None:
    """Add events to their buckets, or handle them by themselves."""
    watch = watch_of(environ, runtime.trace_key)
    alone, mark = watch.traced or ALONE in environ, asked_mark(environ)
    ident = Ident(watch, mark, trace=trace_of(environ, runtime.spans is not None))
    later = environ[LATER]()

    def answer(response: Response, results: list[Result], failure: TaskError | None = None) -> None:
        answered = time.monotonic()
        later(response)
        export(runtime, ident, results, arrived, answered, response, failure)

    def held(number: int | TaskError) -> None:
        if isinstance(number, TaskError):
            answer(failed(runtime, number, arrived, mark), [], number)
        else:
            answer(Response(json.dumps({"held": number}), 202, content_type=JSON), [])

    def reply(error: TaskError | None, results: list[Result], output: Object) -> None:
        if error is not None:
            answer(failed(runtime, error, arrived, mark), results, error)
        elif watch.traced:
            answer(traced(runtime, output, results, arrived), results)
        else:
            answer(Response([output.view()], content_type=JSON), results)

    try:
        if alone:
            events.handle(given, deadline, watch, reply, ident.trace)
        else:
            events.take(given, deadline, held)
    except TaskError as error:
        answer(failed(runtime, error, arrived, mark), [], error)


def _coordinator(
    runtime: Runtime, wanted: frozenset[int], ident: Ident, deadline: float
) -> Coordinator | None:
    """Return a coordinator in this wrap; None unless all other wraps can be reached directly."""
    peer_protocol = runtime.peer_protocol
    routes = peer_protocol and peer_protocol.routes(ident.number)
    if not peer_protocol or not routes:
        return None
    return Coordinator(peer_protocol, runtime.threads, routes, wanted, deadline)


def _answer(
    runtime: Runtime, entry: Entry, arrived: float, execution: Execution, results: list[Result]
) -> Response:
    if entry.fail is not None:
        raise workflow_failed(*entry.fail)
    output = execution.data.resolve(entry.output)
    if entry.emits:
        emitted = {name: execution.data[number].in_json() for name, number in entry.emits.items()}
        output = Object(json.dumps({"output": output.in_json(), "emitted": emitted}), JSON)
    if execution.ident.watch.traced:
        if isinstance(output.head, tuple):  # a failure is answered with its timeline too
            unless_failed(int(output.head[0][:3]), output, Seen.BY_NOBODY)
        return traced(runtime, output, results, arrived)
    if isinstance(output.head, tuple):
        (status, headers), kind = output.head, output.content_type
        if runtime.wrap.instances and "Content-Type" not in dict(headers):
            kind = kind or UNSAID  # which is left out where another task may follow
        return Response([output.view()], status, headers, kind)
    return Response([output.view()], content_type=output.answer_type())


def _call(runtime: Runtime, environ: Environ, arrived: float, deadline: float) -> None:
    """Run the tasks that another wrap requests through the gateway."""
    build, callers = build_of(runtime.trace_key), environ.get(BUILD, "")
    check_caller(runtime.wrap.name, build, callers)
    asked = request_of(body_of(environ))
    trace = trace_context.checked(asked.ident.trace)
    ident = replace(asked.ident, mark=mark_of(asked.ident.mark), trace=trace)
    if not watch_of(environ, runtime.trace_key).traced:
        ident = replace(ident, watch=UNWATCHED)

    def respond(execution: Execution, results: list[Result]) -> Response:
        store_path.put(runtime.store, ident.number, store_path.outputs(results), deadline)
        pieces = list(framing.pieces(answer(results, arrived)))
        return Response(pieces, content_type=CONTENT_TYPE)

    engine = engine_of(runtime, asked)
    Answering(runtime, environ, ident, arrived, deadline, respond).execute(engine, asked.objects)

"""The wrap's HTTP face: the workflow's requests, calls of other wraps, health."""

from __future__ import annotations

import hmac
import json
import math
import threading
import time
import traceback
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import Any, cast
from uuid import uuid4

from flask import Flask, Response, request

from wrap.cluster import store_path
from wrap.cluster.coordinator import Coordinator
from wrap.cluster.participant import Participant, engine_of, told
from wrap.config.redaction import redacted
from wrap.config.wrap_spec import Entry, Wrap
from wrap.core.dag import Engine, Part
from wrap.core.errors import SERVER_FAULT, TaskError, workflow_failed
from wrap.core.program import Key, Program, keys
from wrap.dispatch.execution import Execution, Outcome
from wrap.dispatch.placement import Deciding
from wrap.dispatch.results import all_results
from wrap.dispatch.runtime import Runtime
from wrap.dispatch.sessions import Events
from wrap.event_loop.liveness import Pulse
from wrap.functions.answers import METHODS
from wrap.functions.styles import OF_SERVER
from wrap.http.server import ARRIVED, LATER, TURNS, LargeBody
from wrap.net import framing
from wrap.net.gateway_client import (
    ADDRESS,
    ANSWERED_HEADER,
    CALL_HEADER,
    CONTENT_TYPE,
    TIMEOUT_HEADER,
    TRACE_HEADER,
    answer,
)
from wrap.net.messages import UNWATCHED, Ident, Request, Result, Watch
from wrap.net.object_store import Store
from wrap.net.peer_server import PeerServer
from wrap.net.transport import GRACE_S, Forwarded
from wrap.observe import log, trace_context
from wrap.observe.metrics import PROMETHEUS, page, process_metrics, replica_metrics
from wrap.observe.timeline import timeline
from wrap.observe.trace_context import TraceContext
from wrap.pipes.piecewise import Near, Pieces
from wrap.values.in_json import from_json
from wrap.values.value import JSON, Object

#: What the header of a trace may ask for behind the key: a probe beside each handler, whose ticks
#: are in the timeline; the CPU-speed probe before and after each, whose times are.
_PROBE, _CPU_SPEED, _STATE_CHANGES, _MEMORY = "probe", "cpu-speed", "state", "memory"
#: What tells whether the wrap serves, which one it is, and what it has to do; also a busy one.
PROBES = ("/_/health", "/_/wrap", ADDRESS, "/metrics")
#: Where dead letters are.
_LETTERS = "/_/dead-letters"
_ID_HEADER = "X-Call-Id"
#: Of W3C Trace Context.
_PARENT_HEADER, _STATE_HEADER = "Traceparent", "Tracestate"
#: Where a WSGI environment has the headers; to look there takes a fifth of the time of Flask's way.
_CALL, _TIMEOUT, _TRACE, _CALL_ID, _PARENT, _STATE = (
    "HTTP_" + name.upper().replace("-", "_")
    for name in (
        *(CALL_HEADER, TIMEOUT_HEADER, TRACE_HEADER, _ID_HEADER),
        *(_PARENT_HEADER, _STATE_HEADER),
    )
)
#: The header of events that are handled by themselves, and answered when they have been.
_ALONE = "HTTP_X_CHIRON_ALONE"
#: From here on the status is one of failure.
_FAILED = "400"
#: After how many seconds a request may be sent again for which there was no memory.
_RETRY_S = "1"
#: The headers that a request loses which another wrap answers in this one's place.
_NOT_PASSED_ON = (
    *("Connection", "Content-Length", "Host", "Keep-Alive", "Te", "Trailer", "Transfer-Encoding"),
    *("Upgrade", "Expect", CALL_HEADER, TIMEOUT_HEADER),
)
#: Characters of an id that log lines have: of random ones, enough to tell those of a log apart.
_SHOWN_OF_ID = 8


def create_app(
    runtime: Runtime,
    pulse: Pulse,
    listener: PeerServer | None = None,
    events: Events | None = None,
    participant: Participant | None = None,
) -> Flask:
    """The application of a wrap that is ready to run.

    It is healthy as long as the event loop turns, which `pulse` observes. With `events`, requests
    are those of buckets. If other wraps call it directly, `listener` accepts their connections and
    `participant` answers their calls.
    """
    app = Flask("wrap")
    replica = uuid4().hex

    entry = runtime.wrap.entry
    whole = None
    if entry is not None and entry.machine is None:
        gives = {key for key in keys(entry.output) if key is not None}.union(entry.emits.values())
        wrap = runtime.wrap
        graph = wrap.graph if wrap.remotes else wrap.live_graph
        whole = graph.part(wrap.place_of, gives)

    @app.get(PROBES[0])
    def health() -> Response:
        still = pulse.stands_still
        return Response("the event loop stands still\n" if still else "OK", 503 if still else 200)

    @app.route("/", methods=["OPTIONS"])
    def build() -> Response:
        """Who has deployed a build asks for that one: the one before may answer meanwhile."""
        if _TRACE not in request.environ:
            return app.make_default_options_response()
        if not _watch(runtime.trace_key).traced:
            return Response("another build of it answers\n", 503)
        return Response(status=204)

    @app.get(PROBES[1])
    def name() -> str:
        return runtime.route.target or runtime.wrap.name

    @app.get(ADDRESS)
    def direct() -> Response:
        return Response(listener.address) if listener is not None else Response(status=404)

    @app.get(PROBES[3])
    def metrics() -> Response:
        taken, queued = request.environ[TURNS]()
        taken += participant.in_hand if participant is not None else 0
        held = events.size if events is not None else runtime.sink.held if runtime.sink else 0
        firings = events.load if events is not None else None
        lines = replica_metrics(runtime, replica, taken, queued, held, firings)
        lines += runtime.metrics.lines() + process_metrics()
        lines += listener.refusals.count.lines() if listener is not None else []
        lines += events.metrics() if events is not None else []
        lines += runtime.spans.dropped.lines() if runtime.spans is not None else []
        return Response(page(lines), content_type=PROMETHEUS)

    @app.post("/_/route")
    def route() -> Response:
        """Have another entry wrap answer from now on; the empty name stands for this one."""
        if runtime.wrap.entry is None or not _watch(runtime.trace_key).traced:
            return Response("only an entry takes this, with its key\n", 403)
        try:
            runtime.route.change(request.get_data(as_text=True))
        except ValueError as error:
            return Response(f"{error}\n", 400)
        return Response(status=204)

    @app.post(_LETTERS)
    def letters() -> Response:
        """Show, run again or forget dead letters; the body has the verb and names, by lines."""
        if events is None or not events.is_durable:
            return Response("its buckets are not durable: there are no dead letters\n", 404)
        if not _watch(runtime.trace_key).traced:
            return Response("only who has the key of this build may look at dead letters\n", 403)
        verb, *names = request.get_data(as_text=True).splitlines() or [""]
        if verb not in ("show", "retry", "discard"):
            return Response(f"{verb!r} is no verb: show, retry or discard\n", 400)
        try:
            found = events.letters(verb, names, time.monotonic() + runtime.wrap.timeout_s)
        except TaskError as error:
            return Response(told(runtime, error, time.monotonic()), error.status, content_type=JSON)
        return Response(json.dumps(found), content_type=JSON)

    methods = _methods(entry)

    @app.route("/", defaults={"path": ""}, methods=methods)
    @app.route("/<path:path>", methods=methods)
    def run(path: str) -> Response:
        arrived = request.environ.get(ARRIVED) or time.monotonic()
        try:
            seconds = _seconds(request.environ.get(_TIMEOUT))
            deadline = arrived + min(runtime.wrap.timeout_s, seconds)
            if time.monotonic() >= deadline:
                raise TaskError("timeout", "no thread was free: add replicas", status=504)
            if runtime.wrap.entry is None and _CALL in request.environ:
                return _call(runtime, arrived, deadline)
            return _workflow(runtime, whole, events, arrived, deadline)
        except TaskError as error:
            return _not_begun(runtime, error, arrived)
        except Exception as error:  # no thread, descriptor or memory could be had
            return _not_begun(runtime, _lack(error), arrived)

    return app


def _methods(entry: Entry | None) -> list[str]:
    """The methods that the templates of all functions serve that get the request."""
    if entry is None or entry.buckets is not None:  # no function gets it
        return ["POST"]
    served = [METHODS.get(style, METHODS["http"]) for style in entry.styles]
    return [each for each in METHODS["http"] if all(each in its for its in served)]


def _not_begun(runtime: Runtime, error: TaskError, arrived: float) -> Response:
    mark = _asked_mark()
    response = _failed(runtime, error, arrived, mark)
    if runtime.wrap.entry is not None and not runtime.route.target:  # else another one tells it
        ident = Ident(mark=mark, trace=_trace(runtime))
        _export(runtime, ident, [], arrived, time.monotonic(), response, error)
    return response


def _failed(runtime: Runtime, error: TaskError, arrived: float, mark: str) -> Response:
    """The answer; an entry's log has why, where that is not what the client has sent."""
    runtime.metrics.failed(error.code)
    body = told(runtime, error, arrived)
    if runtime.wrap.entry is not None and error.status >= SERVER_FAULT:
        fields = error.as_dict(redacted)
        log.failed(fields["function"] or fields["wrap"], mark, fields["code"], fields["message"])
    later = {"Retry-After": _RETRY_S} if error.code == "full" else None
    return Response(body, error.status, later, mimetype="application/json")


def _lack(error: Exception) -> TaskError:
    traceback.print_exception(error)
    return TaskError("wrap-failed", f"{type(error).__name__}: {error}")


def _execute(
    runtime: Runtime,
    program: Program,
    objects: dict[Key, Object],
    ident: Ident,
    arrived: float,
    deadline: float,
    respond: Callable[[Execution, list[Result]], Response],
    later: Callable[[Response], None],
    home: Coordinator | None = None,
) -> None:
    """Begin an execution, whose answer, for `later`, `respond` makes when it has ended."""

    def reply(execution: Execution, outcome: Outcome) -> None:
        results = all_results(execution, outcome) if isinstance(outcome, TaskError) else outcome
        failure = None
        try:
            if isinstance(outcome, TaskError):
                raise outcome
            response = respond(execution, outcome)
        except TaskError as error:
            failure, response = error, _failed(runtime, error, arrived, ident.mark)
        except Exception as error:  # no memory for the answer
            failure = _lack(error)
            response = _failed(runtime, failure, arrived, ident.mark)
        answered = time.monotonic()
        if pieces:
            pieces[0].end(failure is not None)
        # What has come piece by piece is answered, unless it failed before the first of them.
        if (not pieces or failure is not None) and unanswered.acquire(blocking=False):
            later(marked(response))
        runtime.transport.release(ident)
        if runtime.store is not None and crossing:
            store_path.delete(runtime.store, crossing)
            if isinstance(outcome, TaskError):  # what still runs elsewhere may put more there
                _delete_later(runtime, runtime.store, crossing, deadline + GRACE_S)
        if runtime.wrap.entry is not None:
            _export(runtime, ident, results, arrived, answered, response, failure)
        elif runtime.spans is not None and failure is not None:
            runtime.spans.part(ident, results)

    forwarded = runtime.wrap.entry is not None and _TIMEOUT in request.environ
    unanswered, pieces = threading.Lock(), list[Pieces]()

    def marked(response: Response) -> Response:
        if forwarded:
            response.headers[ANSWERED_HEADER] = runtime.wrap.name
        return response

    def begin(body: Pieces) -> None:
        pieces.append(body)
        runtime.threads.start(partial(send, body))

    def send(body: Pieces) -> None:
        try:
            status, kind, headers = body.begin()
        except TaskError:  # the outcome is answered
            body.close()
            return
        if unanswered.acquire(blocking=False):
            later(marked(_with_head(Response(cast(Any, body)), status, kind, headers)))
        else:
            body.close()

    client = None
    if runtime.wrap.answers is not None and request.method != "HEAD":
        client = Near(begin) if runtime.wrap.entry is not None and not ident.watch.traced else None
    crossing = list[str]()
    if home is not None and runtime.store is not None:
        crossing = [store_path.name_of(ident.number, key) for key in runtime.wrap.crossing]
    execution = Execution(runtime, program, objects, ident, deadline, reply, home, client=client)
    if home is not None:
        home.exchange.add(execution)
    execution.start()


def _export(
    runtime: Runtime,
    ident: Ident,
    results: list[Result],
    arrived: float,
    answered: float,
    response: Response,
    failure: TaskError | None,
) -> None:
    if runtime.spans is not None:
        status = response.status_code
        runtime.spans.request(ident, results, arrived, answered, status, failure)


def _delete_later(runtime: Runtime, store: Store, names: list[str], when: float) -> None:
    def delete() -> None:
        runtime.threads.start(partial(store_path.delete, store, names))

    runtime.loop.call_at(when, delete)


def _workflow(
    runtime: Runtime, whole: Part | None, events: Events | None, arrived: float, deadline: float
) -> Response:
    entry = runtime.wrap.entry
    if entry is None:
        message = f"this wrap only runs a part of {runtime.wrap.workflow}: call its entry wrap"
        raise TaskError("not-an-entry", message, status=400)
    if target := runtime.route.target:
        return _forwarded(runtime, target, deadline)
    body = _bounded(_body(), runtime.most_request)
    given = Object(body, request.environ.get("CONTENT_TYPE", ""))
    if runtime.wrap.remotes or any(each.sees_head for each in runtime.functions.values()):
        given.head = dict(request.environ)
    if events is not None:
        return _events(runtime, events, given, arrived, deadline)
    called = request.environ.get(_CALL_ID, "")
    objects = _given(runtime.wrap, given)
    ident, home = Ident(_watch(runtime.trace_key), _mark(called), trace=_trace(runtime)), None
    engine: Program
    if whole is None:
        ident_of = called or str(uuid4())
        engine = Deciding(
            runtime.wrap, entry, ident_of, deadline, runtime.longest, runtime.most_state
        )
    elif home := _home(runtime, whole.gives, ident, deadline):
        tasks = frozenset(runtime.wrap.tasks)
        engine = Engine(runtime.wrap.share_of(tasks, whole.gives & tasks))
    else:
        engine = Engine(whole)
    if home is not None and runtime.store is not None and None in runtime.wrap.crossing:
        store_path.put(runtime.store, ident.number, {None: objects[None]}, deadline)
    respond = partial(_answer, runtime, entry, arrived)
    later = request.environ[LATER]()
    _execute(runtime, engine, objects, ident, arrived, deadline, respond, later, home)
    return Response()


def _given(wrap: Wrap, request: Object) -> dict[Key, Object]:
    """The objects that come with a request: of a task that is called by itself, its streams too."""
    if not wrap.with_request:
        return {None: request}
    try:
        told = json.loads(request.text())
        found: dict[Key, Object] = {None: Object(from_json(told["input"]))}
        streams = {name: Object(from_json(told["streams"][name])) for name in wrap.with_request}
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError):
        names = ", ".join(wrap.with_request)
        message = (
            f'the request has to be {{"input": ..., "streams": ...}} with {names}, '
            'each a text or {"base64": ...}'
        )
        raise TaskError("bad-request", message, status=400) from None
    return found | {wrap.with_request[name]: each for name, each in streams.items()}


def _events(
    runtime: Runtime, events: Events, given: Object, arrived: float, deadline: float
) -> Response:
    """Hold events, or handle them by themselves."""
    watch = _watch(runtime.trace_key)
    alone, mark = watch.traced or _ALONE in request.environ, _asked_mark()
    ident = Ident(watch, mark, trace=_trace(runtime))
    later = request.environ[LATER]()

    def answer(response: Response, results: list[Result], failure: TaskError | None = None) -> None:
        answered = time.monotonic()
        later(response)
        _export(runtime, ident, results, arrived, answered, response, failure)

    def held(number: int | TaskError) -> None:
        if isinstance(number, TaskError):
            answer(_failed(runtime, number, arrived, mark), [], number)
        else:
            answer(Response(json.dumps({"held": number}), 202, content_type=JSON), [])

    def reply(error: TaskError | None, results: list[Result], output: Object) -> None:
        if error is not None:
            answer(_failed(runtime, error, arrived, mark), results, error)
        elif watch.traced:
            answer(_traced(runtime, output, results, arrived), results)
        else:
            answer(_uncopied([output.view()], JSON), results)

    try:
        if alone:
            events.handle(given, deadline, watch, reply, ident.trace)
        else:
            events.take(given, deadline, held)
    except TaskError as error:
        answer(_failed(runtime, error, arrived, mark), [], error)
    return Response()


def _home(
    runtime: Runtime, wanted: frozenset[int], ident: Ident, deadline: float
) -> Coordinator | None:
    """This wrap as the home of an execution, where all others can be reached directly."""
    exchange = runtime.exchange
    routes = exchange and exchange.routes(ident.number)
    if not exchange or not routes:
        return None
    return Coordinator(exchange, runtime.threads, routes, wanted, deadline)


def _answer(
    runtime: Runtime, entry: Entry, arrived: float, execution: Execution, results: list[Result]
) -> Response:
    """What the client gets of the workflow."""
    if entry.fail is not None:
        raise workflow_failed(*entry.fail)
    output = execution.data.resolve(entry.output)
    if entry.emits:
        emitted = {name: execution.data[number].in_json() for name, number in entry.emits.items()}
        output = Object(json.dumps({"output": output.in_json(), "emitted": emitted}), JSON)
    failed = isinstance(output.head, tuple) and output.head[0] >= _FAILED
    if execution.ident.watch.traced and not failed:
        return _traced(runtime, output, results, arrived)
    response = _uncopied([output.view()], output.answer_type())
    if isinstance(output.head, tuple):
        status, headers = output.head
        return _with_head(response, status, output.content_type, headers)
    return response


def _with_head(
    response: Response, status: str, kind: str, headers: Iterable[tuple[str, str]]
) -> Response:
    response.status = status
    response.headers["Content-Type"] = kind
    if not kind:
        del response.headers["Content-Type"]
    response.headers.extend(headers)
    return response


def _traced(runtime: Runtime, output: Object, results: list[Result], arrived: float) -> Response:
    told = {
        "output": output.in_json(),
        "timeline": timeline(runtime.wrap, results, arrived, time.monotonic()),
    }
    return Response(json.dumps(told), content_type=JSON)


def _uncopied(pieces: list[bytes | memoryview], content_type: str) -> Response:
    """An answer that is sent from where its pieces are, as `wrap.http.server` does."""
    length = {"Content-Length": str(sum(map(len, pieces)))}
    return Response(cast(list[bytes], pieces), headers=length, content_type=content_type)


def _forwarded(runtime: Runtime, target: str, deadline: float) -> Response:
    headers = {name: value for name, value in request.headers if name not in _NOT_PASSED_ON}
    place = request.environ["REQUEST_URI"].removeprefix("/")
    asked = Forwarded(request.method, f"/{place}" if place else "", headers, _body())
    status, headers_of, body = runtime.transport.forward(target, asked, deadline)
    response = Response(body, status)
    del response.headers["Content-Type"]
    left_out = OF_SERVER | {ANSWERED_HEADER.lower()}
    sent = (each for each in headers_of if each[0].lower() not in left_out)
    response.headers.extend(sent)
    return response


def _watch(trace_key: str) -> Watch:
    """What the caller is to be told; to one that does not know the key, nothing."""
    key, _, more = request.environ.get(_TRACE, "").partition(" ")
    if not key or not hmac.compare_digest(key.encode(), trace_key.encode()):
        return UNWATCHED
    return Watch(True, *(more == each for each in (_PROBE, _CPU_SPEED, _STATE_CHANGES, _MEMORY)))


def _trace(runtime: Runtime) -> TraceContext | None:
    """The trace that the request is part of, or that begins with it."""
    parent = request.environ.get(_PARENT)
    given = trace_context.given(parent, request.environ.get(_STATE, "")) if parent else None
    return given if runtime.spans is None else trace_context.exported(given)


def _asked_mark() -> str:
    return _mark(request.environ.get(_CALL_ID, ""))


def _mark(ident: str) -> str:
    """The beginning of a call's id, by which the log names it; empty for what could forge lines."""
    shown = ident[:_SHOWN_OF_ID]
    return shown if shown.isascii() and shown.replace("-", "").isalnum() else ""


def _call(runtime: Runtime, arrived: float, deadline: float) -> Response:
    """Run what another wrap asks for through the gateway."""
    asked = _asked(_body())
    trace = trace_context.checked(asked.ident.trace)
    ident = replace(asked.ident, mark=_mark(asked.ident.mark), trace=trace)
    if not _watch(runtime.trace_key).traced:
        ident = replace(ident, watch=UNWATCHED)

    def respond(execution: Execution, results: list[Result]) -> Response:
        store_path.put(runtime.store, ident.number, store_path.outputs(results), deadline)
        return _uncopied(list(framing.pieces(answer(results, arrived))), CONTENT_TYPE)

    engine = engine_of(runtime, asked)
    later = request.environ[LATER]()
    _execute(runtime, engine, asked.objects, ident, arrived, deadline, respond, later)
    return Response()


def _body() -> bytes | bytearray:
    """The request's body; a large one is not copied for that."""
    stream = request.stream
    return stream.whole() if isinstance(stream, LargeBody) else request.get_data()


def _bounded(body: bytes | bytearray, most: int | None) -> bytes | bytearray:
    if most is not None and len(body) > most:
        message = (
            f"the request has {len(body)} bytes, and there is memory for {most} here: "
            "send less, or give its functions more memory (limits in stack.yaml)"
        )
        raise TaskError("too-large", message, status=413)
    return body


def _asked(body: bytes | bytearray) -> Request:
    try:
        asked = Request.read(iter(framing.split(body)))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        message = f"not the frames of a wrap's request: {error}"
        raise TaskError("bad-frames", message, status=400) from error
    if asked is None:
        message = "the frames of a wrap's request are missing"
        raise TaskError("bad-frames", message, status=400)
    return asked


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text) if text else math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        message = f"{TIMEOUT_HEADER} is {text!r}: send seconds, above 0"
        raise TaskError("bad-timeout", message, status=400)
    return seconds

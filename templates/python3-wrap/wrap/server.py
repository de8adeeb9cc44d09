"""The wrap's HTTP face: the workflow's requests, stage calls of other wraps, health."""

from __future__ import annotations

import hmac
import json
import math
import sys
import time
from dataclasses import replace

from flask import Flask, Response, request

from wrap import frames
from wrap.data import reads_as_json
from wrap.entry import run_workflow
from wrap.errors import TaskError
from wrap.messages import UNWATCHED, Job, Watch
from wrap.remote import CONTENT_TYPE, STAGE_HEADER, TIMEOUT_HEADER, TRACE_HEADER, answer
from wrap.runtime import Runtime
from wrap.serving import ARRIVED, LargeBody
from wrap.stage import run_stage
from wrap.timeline import timeline

#: What the header of a trace may ask for behind the key: a probe beside each handler, whose ticks
#: are in the timeline; the CPU-speed probe before and after each, whose times are.
_PROBE, _CPU_SPEED = "probe", "cpu-speed"
#: From here on it is not the request that was wrong.
_SERVER_FAULT = 500
#: What tells whether the wrap serves, and which one it is.
PROBES = ("/_/health", "/_/wrap")
_ID_HEADER = "X-Call-Id"
#: Where a WSGI environment has the headers; to look there takes a fifth of the time of Flask's way.
_STAGE, _TIMEOUT, _TRACE, _CALL_ID = (
    "HTTP_" + name.upper().replace("-", "_")
    for name in (STAGE_HEADER, TIMEOUT_HEADER, TRACE_HEADER, _ID_HEADER)
)
#: The headers of a request that another wrap answers in this one's place.
_PASSED_ON = ("Content-Type", TRACE_HEADER, _ID_HEADER)
#: Characters of an id that log lines have: of random ones, enough to tell those of a log apart.
_SHOWN_OF_ID = 8


def create_app(runtime: Runtime) -> Flask:
    """The application of a wrap that is ready to run."""
    app = Flask("wrap")

    @app.get(PROBES[0])
    def health() -> str:
        return "OK"

    @app.get(PROBES[1])
    def name() -> str:
        return runtime.route.target or runtime.wrap.name

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

    @app.post("/", defaults={"path": ""})
    @app.post("/<path:path>")
    def run(path: str) -> Response:
        arrived = request.environ.get(ARRIVED) or time.monotonic()
        try:
            seconds = _seconds(request.environ.get(_TIMEOUT))
            deadline = arrived + min(runtime.wrap.timeout_s, seconds)
            if time.monotonic() >= deadline:
                raise TaskError("timeout", "no thread was free: add replicas", status=504)
            if runtime.wrap.entry is None and _STAGE in request.environ:
                return _stage(runtime, arrived, deadline)
            return _workflow(runtime, arrived, deadline)
        except TaskError as error:
            return _failed(runtime, error, arrived)
        except Exception as error:  # no thread, descriptor or memory could be had
            app.logger.exception("wrap %s", runtime.wrap.name)
            failure = TaskError("wrap-failed", f"{type(error).__name__}: {error}")
            return _failed(runtime, failure, arrived)

    return app


def _failed(runtime: Runtime, error: TaskError, arrived: float) -> Response:
    cause = runtime.memory_kills.during(arrived) if error.status >= _SERVER_FAULT else None
    if cause:
        error.message = f"wrap {runtime.wrap.name}: {cause}: {error.message}"
        print(f"wrap {runtime.wrap.name}: {cause}", file=sys.stderr)
    body = json.dumps(error.located(None, None, runtime.wrap.name).as_dict())
    return Response(body, error.status, mimetype="application/json")


def _workflow(runtime: Runtime, arrived: float, deadline: float) -> Response:
    entry = runtime.wrap.entry
    if entry is None:
        message = f"this wrap only runs stages of {runtime.wrap.workflow}: call its entry wrap"
        raise TaskError("not-an-entry", message, status=400)
    if target := runtime.route.target:
        return _forwarded(runtime, target, deadline)
    watch = _watch(runtime.trace_key)
    text = _text(_bounded(_body(), runtime.most_request))
    execution = _execution(request.environ.get(_CALL_ID, ""))
    output, results = run_workflow(runtime, entry, text, deadline, watch, execution)
    if watch.traced:
        rows = timeline(results, arrived, runtime.mechanism.kind)
        return _json(json.dumps({"output": output, "timeline": rows}))
    known = isinstance(entry.output, list)  # several outputs are joined to a JSON list
    if known or reads_as_json(output):
        return _json(output)
    return Response(output, mimetype="text/plain")


def _forwarded(runtime: Runtime, target: str, deadline: float) -> Response:
    headers = {name: value for name, value in request.headers if name in _PASSED_ON}
    status, answered, kind = runtime.transport.forward(target, _body(), headers, deadline)
    return Response(answered, status, content_type=kind)


def _watch(trace_key: str) -> Watch:
    """What the caller is to be told; to one that does not know the key, nothing."""
    key, _, more = request.environ.get(_TRACE, "").partition(" ")
    if not key or not hmac.compare_digest(key.encode(), trace_key.encode()):
        return UNWATCHED
    return Watch(traced=True, probed=more == _PROBE, cpu_probed=more == _CPU_SPEED)


def _execution(ident: str) -> str:
    """The beginning of a call's id, by which the log names it; empty for what could forge lines."""
    shown = ident[:_SHOWN_OF_ID]
    return shown if shown.isascii() and shown.replace("-", "").isalnum() else ""


def _stage(runtime: Runtime, arrived: float, deadline: float) -> Response:
    job = _job(_body())
    job = replace(job, execution=_execution(job.execution))
    if not _watch(runtime.trace_key).traced:
        job = replace(job, watch=UNWATCHED)
    processes = runtime.wrap.stages.get(job.stage, [])
    if sorted(job.inputs) != sorted(task for tasks in processes for task in tasks):
        message = f"stage {job.stage} has other tasks here: deploy all wraps of one plan"
        raise TaskError("other-plan", message, stage=job.stage, status=400)
    results = run_stage(runtime, job, processes, {}, deadline)
    body = answer(results, arrived)
    length = {"Content-Length": str(sum(map(len, body)))}
    return Response(body, headers=length, content_type=CONTENT_TYPE)


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


def _job(body: bytes | bytearray) -> Job:
    try:
        job = Job.read(iter(frames.split(body)))
    except (ValueError, TypeError, LookupError, OverflowError, RecursionError) as error:
        raise TaskError("bad-frames", f"not the frames of a job: {error}", status=400) from error
    if job is None:
        raise TaskError("bad-frames", "the frames of a job are missing", status=400)
    return job


def _text(body: bytes | bytearray) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        message = f"the request is not UTF-8 text ({error}): encode it, in base64 for example"
        raise TaskError("not-text", message, status=400) from error


def _seconds(text: str | None) -> float:
    try:
        seconds = float(text) if text else math.inf
    except ValueError:
        seconds = math.nan
    if not seconds > 0:
        message = f"{TIMEOUT_HEADER} is {text!r}: send seconds, above 0"
        raise TaskError("bad-timeout", message, status=400)
    return seconds


def _json(text: str) -> Response:
    return Response(text, mimetype="application/json")

"""The wrap's HTTP face: the workflow's requests, stage calls of other wraps, health."""

from __future__ import annotations

import hmac
import json
import math
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
#: are in the timeline; the reference loop before and after each, whose times are.
_PROBE, _PACE = "probe", "pace"
#: What tells whether the wrap serves, and which one it is.
PROBES = ("/_/health", "/_/wrap")
#: Where a WSGI environment has the headers; to look there takes a fifth of the time of Flask's way.
_STAGE, _TIMEOUT, _TRACE = (
    "HTTP_" + name.upper().replace("-", "_")
    for name in (STAGE_HEADER, TIMEOUT_HEADER, TRACE_HEADER)
)


def create_app(runtime: Runtime) -> Flask:
    """The application of a wrap that is ready to run."""
    app = Flask("wrap")

    @app.get(PROBES[0])
    def health() -> str:
        return "OK"

    @app.get(PROBES[1])
    def name() -> str:
        return runtime.wrap.name

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
            return _failed(runtime, error)
        except Exception as error:  # no thread, descriptor or memory could be had
            app.logger.exception("wrap %s", runtime.wrap.name)
            return _failed(runtime, TaskError("wrap-failed", f"{type(error).__name__}: {error}"))

    return app


def _failed(runtime: Runtime, error: TaskError) -> Response:
    body = json.dumps(error.located(None, None, runtime.wrap.name).as_dict())
    return Response(body, error.status, mimetype="application/json")


def _workflow(runtime: Runtime, arrived: float, deadline: float) -> Response:
    entry = runtime.wrap.entry
    if entry is None:
        message = f"this wrap only runs stages of {runtime.wrap.workflow}: call its entry wrap"
        raise TaskError("not-an-entry", message, status=400)
    watch = _watch(runtime.trace_key)
    text = _text(_body())
    output, results = run_workflow(runtime, entry, text, deadline, watch)
    if watch.traced:
        rows = timeline(results, arrived, runtime.mechanism.kind)
        return _json(json.dumps({"output": output, "timeline": rows}))
    known = isinstance(entry.output, list)  # several outputs are joined to a JSON list
    if known or reads_as_json(output):
        return _json(output)
    return Response(output, mimetype="text/plain")


def _watch(trace_key: str) -> Watch:
    """What the caller is to be told; to one that does not know the key, nothing."""
    key, _, more = request.environ.get(_TRACE, "").partition(" ")
    if not key or not hmac.compare_digest(key.encode(), trace_key.encode()):
        return UNWATCHED
    return Watch(traced=True, probed=more == _PROBE, paced=more == _PACE)


def _stage(runtime: Runtime, arrived: float, deadline: float) -> Response:
    job = _job(_body())
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

"""The wrap's HTTP face: the workflow's requests, stage calls of other wraps, health."""

from __future__ import annotations

import json
import time

from flask import Flask, Response, request

from wrap import frames
from wrap.data import is_json
from wrap.entry import run_workflow
from wrap.errors import TaskError
from wrap.messages import Job
from wrap.remote import CONTENT_TYPE, STAGE_HEADER, TIMEOUT_HEADER, answer
from wrap.runtime import Runtime
from wrap.stage import run_stage
from wrap.timeline import timeline

TRACE_HEADER = "X-Chiron-Trace"
#: With the one above: a probe runs beside each handler, and its ticks are in the timeline.
PROBE_HEADER = "X-Chiron-Probe"


def create_app(runtime: Runtime) -> Flask:
    """The application of a wrap that is ready to run."""
    app = Flask("wrap")

    @app.get("/_/health")
    def health() -> str:
        return "OK"

    @app.post("/", defaults={"path": ""})
    @app.post("/<path:path>")
    def run(path: str) -> Response:
        arrived = time.monotonic()
        try:
            if STAGE_HEADER in request.headers:
                return _stage(runtime, arrived)
            return _workflow(runtime, arrived)
        except TaskError as error:
            body = json.dumps(error.located(None, None, runtime.wrap.name).as_dict())
            return Response(body, error.status, mimetype="application/json")

    return app


def _workflow(runtime: Runtime, arrived: float) -> Response:
    entry = runtime.wrap.entry
    if entry is None:
        message = f"this wrap only runs stages of {runtime.wrap.workflow}: call its entry wrap"
        raise TaskError("not-an-entry", message, status=400)
    traced = request.headers.get(TRACE_HEADER) == "1"
    deadline = arrived + runtime.wrap.timeout_s
    probed = traced and request.headers.get(PROBE_HEADER) == "1"
    text = _text(request.get_data())
    output, results = run_workflow(runtime, entry, text, deadline, traced, probed)
    if traced:
        rows = timeline(results, arrived, runtime.mechanism.kind)
        return _json(json.dumps({"output": output, "timeline": rows}))
    return _json(output) if is_json(output) else Response(output, mimetype="text/plain")


def _stage(runtime: Runtime, arrived: float) -> Response:
    job = _job(request.get_data())
    processes = runtime.wrap.stages.get(job.stage, [])
    if sorted(job.inputs) != sorted(task for tasks in processes for task in tasks):
        message = f"stage {job.stage} has other tasks here: deploy all wraps of one plan"
        raise TaskError("other-plan", message, stage=job.stage, status=400)
    seconds = min(runtime.wrap.timeout_s, _seconds(request.headers.get(TIMEOUT_HEADER)))
    results = run_stage(runtime, job, processes, {}, arrived + seconds)
    return Response(answer(results, arrived), content_type=CONTENT_TYPE)


def _job(body: bytes) -> Job:
    try:
        job = Job.read(iter(frames.split(body)))
    except (ValueError, TypeError, LookupError) as error:
        raise TaskError("bad-frames", f"not the frames of a job: {error}", status=400) from error
    if job is None:
        raise TaskError("bad-frames", "the frames of a job are missing", status=400)
    return job


def _text(body: bytes) -> str:
    try:
        return body.decode()
    except UnicodeDecodeError as error:
        message = f"the request is not UTF-8 text ({error}): encode it, in base64 for example"
        raise TaskError("not-text", message, status=400) from error


def _seconds(text: str | None) -> float:
    try:
        return float(text) if text else float("inf")
    except ValueError as error:
        message = f"{TIMEOUT_HEADER} is {text!r}: send seconds"
        raise TaskError("bad-timeout", message, status=400) from error


def _json(text: str) -> Response:
    return Response(text, mimetype="application/json")

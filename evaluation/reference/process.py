"""The process of the reference executor: a job on stdin, one line of JSON on stdout."""

from __future__ import annotations

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from flask import Flask

from chiron.evaluation.reference.handlers import (
    Emitted,
    Handler,
    StatusError,
    flask_answer,
    function_of,
)
from chiron.workflow.data import bytes_of, given_to, resolve
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import execute
from chiron.workflow.flowing import Gave, run_buckets
from chiron.workflow.model import Source, Stream, Task, Workflow
from chiron.wrap.core.buckets import triggers
from chiron.wrap.core.buckets.own import MODULE, TriggerError, loaded
from chiron.wrap.core.statemachine.errors import StatesError, cause_of, frames_of
from chiron.wrap.functions.module_file import module_of


def _source(value: str | list[str] | None) -> Source:
    return tuple(value) if isinstance(value, list) else value


def _decide(job: dict[str, Any]) -> dict[str, Any]:
    """Run a state machine."""
    functions = _Functions(job)

    def run(name: str, text: str) -> str:
        try:
            return functions(name, text)
        except _FailedError as failure:
            raise failure.error from failure.__cause__

    tasks = tuple(Task(each["name"], each["function"], None) for each in job["tasks"])
    workflow = Workflow(job["name"], tasks, None, machine=job["machine"])
    done = execute(workflow, bytes_of(job["request"]), run)
    if done.error is not None:
        return {"failed": [done.error.name, done.error.cause]}
    return {"output": done.output, "inputs": done.inputs, "outputs": done.outputs}


def _said(error: BaseException | None) -> str:
    try:
        return str(error)
    except Exception as fault:
        return f"str() of it raised {type(fault).__name__}"


class _FailedError(Exception):
    """The failure of a function whose files are in `folder`; Retry and Catch see `error`."""

    def __init__(self, function: str, error: BaseException, folder: str) -> None:
        super().__init__(function)
        self.error = _states_error(error, folder)
        self.found = {
            "function": function,
            "message": f"{type(error).__name__}: {_said(error)}",
            "error": self.error.name,
            "cause": self.error.cause,
        }


def _states_error(error: BaseException, folder: str) -> StatesError:
    """Return the error in the form that a wrap reports."""
    if isinstance(error, StatesError):
        return error
    if isinstance(error, StatusError):
        return StatesError(error.code, cause_of(error.code, str(error)))
    if isinstance(error, SystemExit):
        return StatesError("exited", cause_of("exited", f"sys.exit({error.code!r})"))

    def own(file: str) -> str | None:
        return file.removeprefix(f"{folder}/") if file.startswith(f"{folder}/") else None

    kind = type(error).__name__
    return StatesError(kind, cause_of(kind, _said(error), frames_of(error, own)))


class _Functions:
    """The functions of a job, each created at its first call."""

    def __init__(self, job: dict[str, Any]) -> None:
        self._app = Flask("reference")
        sys.modules["chiron_io"] = self._emitted = Emitted()
        self._handlers = job["handlers"]
        self._made: dict[str, Handler] = {}

    def __call__(self, name: str, text: str, streams: dict[str, str] | None = None) -> str:
        """Return the answer of `name` to `text`, and to `streams` by their names."""
        self._emitted.begin(streams or {})
        try:
            if name not in self._made:
                self._made[name] = function_of(self._emitted, **self._handlers[name])
            return self._made[name](self._app, text)
        except BaseException as error:  # sys.exit() in a handler is that function's failure
            raise self._failed(name, error) from error

    def gave(self, name: str, text: str) -> Gave:
        """Return the answer of `name` to `text`, and the objects that it emitted into buckets."""
        self._emitted.objects = []
        output = self(name, text)
        try:
            with self._app.test_request_context(method="POST"):
                objects = [
                    (called, group, flask_answer(self._app, value))
                    for called, group, value in self._emitted.objects
                ]
        except BaseException as error:
            raise self._failed(name, error) from error
        return Gave(output, objects)

    def emitted(self, name: str, task: str, awaited: list[str]) -> dict[str, str]:
        """Return the `awaited` outputs of `task`, emitted by the last call, which was of `name`."""
        try:
            with self._app.test_request_context(method="POST"):
                return self._emitted.of(self._app, task, awaited)
        except BaseException as error:
            raise self._failed(name, error) from error

    def _failed(self, name: str, error: BaseException) -> _FailedError:
        return _FailedError(name, error, self._handlers[name]["folder"])


def _flow(job: dict[str, Any]) -> dict[str, Any]:
    tasks = tuple(Task(each["name"], each["function"], None) for each in job["tasks"])
    try:
        folder = Path(job["triggers"])
        buckets = loaded(job["buckets"], lambda file: module_of(folder / file, MODULE, triggers))
    except TriggerError as error:
        raise ChironError("trigger-failed", str(error)) from error
    workflow = Workflow(job["name"], tasks, None, buckets=buckets)
    return vars(run_buckets(workflow, bytes_of(job["request"]), _Functions(job).gave))


def _run(job: dict[str, Any]) -> dict[str, Any]:
    if job["machine"] is not None:
        return _decide(job)
    if job["buckets"] is not None:
        return _flow(job)
    run = _Functions(job)
    inputs: dict[str, str] = {}
    outputs: dict[str, str] = {}
    for task in job["tasks"]:
        name, function, source = task["name"], task["function"], _source(task["source"])
        given = resolve(source, job["request"], outputs)
        streams = {each: outputs[output] for each, output in task["streams"].items()}
        outputs[name] = run(function, given, streams)
        outputs |= run.emitted(function, name, task["emits"])
        reads = tuple(Stream(*each) for each in task["streams"].items())
        inputs[name] = given_to(Task(name, function, source, reads), job["request"], outputs)
    output = resolve(_source(job["output"]), job["request"], outputs)
    return {"output": output, "inputs": inputs, "outputs": outputs}


def _answer(job: dict[str, Any]) -> dict[str, Any]:
    try:
        return _run(job)
    except _FailedError as error:
        return error.found
    except ChironError as error:
        return {"code": error.code, "message": error.message}


def main() -> None:
    """Run the job on stdin; handlers' prints go to stderr, only the answer goes to stdout."""
    answer = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    job = json.load(sys.stdin)
    with ThreadPoolExecutor(1) as thread:  # as in a solo run: no handler runs in the main thread
        found = thread.submit(_answer, job).result()
    json.dump(found, answer)
    answer.flush()
    os._exit(0)  # do not wait for threads that a handler left behind


if __name__ == "__main__":
    main()

"""The inputs and outputs of all functions of a workflow, whose tasks run one by one, each alone."""

from __future__ import annotations

import json
import sys
import time
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import astuple, dataclass, field, replace
from math import inf
from statistics import fmean
from typing import NamedTuple, Protocol

from chiron.deployment.function_error import FunctionFailedError
from chiron.profiler.invocation import RunFailedError
from chiron.workflow.answer import failure_text
from chiron.workflow.asl_resources import tasks_of
from chiron.workflow.asl_shapes import states_in
from chiron.workflow.buckets import own_triggers
from chiron.workflow.data import Request, given_to, resolve, text_of
from chiron.workflow.errors import ChironError
from chiron.workflow.execute import execute
from chiron.workflow.flowing import Gave, run_buckets
from chiron.workflow.model import ANSWER, Stream, Task, Workflow, output_name
from chiron.workflow.trace import Instance, task_of
from chiron.wrap.core.buckets.routes import ALL
from chiron.wrap.core.statemachine.errors import FailStateError, StatesError
from chiron.wrap.values.in_json import from_json


class Run(Protocol):
    """Runs a function alone, where it is deployed."""

    def __call__(
        self, function: str, text: str, limit_s: float | None = None
    ) -> tuple[Mapping[str, str], float]:
        """Return the outputs for the input `text` by name, and the latency in milliseconds.

        The function may run for `limit_s`; None is the limit of any request.
        """


#: An insignificant difference between runs of a function on two inputs, in milliseconds, and
#: relative to the shorter run.
_NOISE_MS, _NOISE = 0.1, 0.1
#: The number of characters of an input that an error shows.
_SHOWN = 80


@dataclass
class WorkflowRun:
    """One run of a workflow: the inputs and outputs of the tasks that ran.

    ``output`` is the workflow's; None if a task that it needs did not run. If a Fail state ends the
    run, it ``fails``, and the output is the `failure_text`. `trace` records the decisions of a
    state machine; its inputs and outputs are those of instances. `took_ms` has the time of each
    task that answered, or whose wrap reported a failure. `lost_ms` has the time of each task that
    was late or ended its process.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    outputs: dict[str, str] = field(default_factory=dict)
    output: str | None = None
    trace: tuple[Instance, ...] = ()
    took_ms: dict[str, float] = field(default_factory=dict)
    lost_ms: dict[str, float] = field(default_factory=dict)
    fails: bool = False


def run_alone(
    workflow: Workflow, request: bytes, run: Run, failures: dict[str, ChironError]
) -> WorkflowRun:
    """Run every task of `workflow` in the order of the stages, on the outputs of its predecessors.

    If a function fails, its error is added to `failures`. So is an error for its successors without
    an input, while other functions still run. Functions already in `failures` do not run.

    Raises ``not-text`` as `chiron.workflow.data.resolve` does.
    """
    if workflow.machine is not None:
        return _decided(workflow, request, run, failures)
    if workflow.buckets is not None:
        return _flowed(workflow, request, run, failures)
    text = text_of(request)
    done = WorkflowRun()
    for task in (workflow.by_name[name] for stage in workflow.stages for name in stage):
        if task.function in failures:
            continue
        missing = [name for name in task.predecessors if name not in done.outputs]
        if missing:
            message = (
                f"function {task.function} has no input to be profiled with: "
                f"{workflow.function_of(missing[0])}, which comes before it, failed"
            )
            failures[task.function] = ChironError("no-input", message, functions=[task.function])
            continue
        done.inputs[task.name] = given_to(_as_alone(task, workflow), text, done.outputs)
        try:
            outputs, _ = run(task.function, done.inputs[task.name])
        except ChironError as error:
            failures[task.function] = _with_input(error, done.inputs[task.name])
            continue
        done.outputs[task.name] = outputs[ANSWER]
        emitted = workflow.emitted.get(task.name, ())
        done.outputs |= {name: outputs[output_name(name)] for name in emitted}
    if workflow.by_name.keys() <= done.outputs.keys():
        done.output = resolve(workflow.output, text, done.outputs)
        if workflow.failure is not None:
            done.output, done.fails = failure_text(*astuple(workflow.failure)), True
    return done


def _as_alone(task: Task, workflow: Workflow) -> Task:
    """Return `task` with the stream names that its function has when it is deployed alone."""
    names = (stream.name for stream in workflow.first_using(task.function).streams)
    return replace(task, streams=tuple(map(Stream, names, (each.output for each in task.streams))))


def _decided(
    workflow: Workflow, request: bytes, run: Run, failures: dict[str, ChironError]
) -> WorkflowRun:
    """Do `run_alone` for a state machine, which may expect functions to fail."""
    failed = dict[str, FunctionFailedError]()
    limits_s = _limits_s(workflow)
    took_ms = list[tuple[float, bool]]()  # of each started task; whether its wrap reported failure

    def run_or_fail(function: str, text: str) -> str:
        begun = time.monotonic()
        try:
            outputs, latency_ms = run(function, text, limits_s.get(function))
        except FunctionFailedError as error:
            seen = error.run if isinstance(error, RunFailedError) else None
            lost_ms = round(1000 * (time.monotonic() - begun), 3)
            took_ms.append((seen.latency_ms, True) if seen else (lost_ms, False))
            failed[function] = error
            raise error.failure from error
        took_ms.append((latency_ms, False))
        return outputs[ANSWER]

    done = execute(workflow, request, run_or_fail, dropped=True)
    output, fails = done.output, isinstance(done.error, FailStateError)
    if done.error is not None and fails:
        output = failure_text(done.error.name, done.error.cause)
    elif done.error is not None:
        blamed = {name: error for name, error in failed.items() if _ended_by(error, done.error)}
        failures.update(blamed)
        if not blamed:
            raise _failing(done.error)
    began = dict(zip(done.inputs, took_ms, strict=True))
    # A task that answered after its TimeoutSeconds has no output either.
    took = {name: ms for name, (ms, failed) in began.items() if failed or name in done.outputs}
    lost = {name: ms for name, (ms, _) in began.items() if name not in took}
    trace = tuple(done.trace)
    return WorkflowRun(done.inputs, done.outputs, output, trace, took, lost, fails)


def _limits_s(workflow: Workflow) -> dict[str, float]:
    """Return the longest limit of each function all of whose tasks have a limit, in seconds."""
    found = dict[str, float]()
    for name, state in states_in(workflow.machine or {"States": {}}):
        if state["Type"] in ("Task", "Map"):
            given = [state.get(field) for field in ("TimeoutSeconds", "HeartbeatSeconds")]
            limit_s = min((each for each in given if isinstance(each, int)), default=inf)
            for function in tasks_of(name, state).values():
                found[function] = max(found.get(function, 0.0), limit_s)
    return {function: limit_s for function, limit_s in found.items() if limit_s < inf}


def _ended_by(failed: FunctionFailedError, error: StatesError) -> bool:
    """Return whether the function's failure `failed` is the cause of the workflow's `error`."""
    failure = failed.failure
    return failure.cause in error.cause and (
        failure.name == error.name or failure.name in error.cause
    )


def _failing(error: StatesError) -> ChironError:
    """Return the error for a workflow that fails with `error` by itself, not by a function."""
    shown = ": ".join(filter(None, (error.name, error.cause))) or "an error without a name"
    message = f"the workflow fails by itself ({shown}): profile it with payloads that it answers"
    return ChironError("workflow-failed", message)


def _flowed(
    workflow: Workflow, request: bytes, run: Run, failures: dict[str, ChironError]
) -> WorkflowRun:
    """Do `run_alone` for buckets; the first run of each task counts.

    If the user's own triggers decide the output, it is unknown: None.
    """
    done, own = WorkflowRun(), own_triggers(workflow.buckets)
    runs = _without(own, workflow) if own else workflow

    def run_or_fail(function: str, text: str) -> Gave:
        try:
            outputs, _ = run(function, text)
        except ChironError as error:
            failures[function] = _with_input(error, text)
            raise
        emitted = json.loads(outputs.get(ALL, "[]"))
        texts = [(name, group, text_of(from_json(value))) for name, group, value in emitted]
        return Gave(outputs[ANSWER], texts)

    try:
        found = run_buckets(runs, request, run_or_fail)
        done.output = None if own else found.output
        for task in workflow.by_name:
            if (first := f"{task}#1") in found.inputs:
                done.inputs[task], done.outputs[task] = found.inputs[first], found.outputs[first]
    except ChironError as error:
        if error.code != "function-failed":
            raise
        for function in error.functions:
            failures.setdefault(function, error)
    for function in workflow.functions:
        tasks = [task.name for task in workflow.tasks if task.function == function]
        if not failures and done.inputs.keys().isdisjoint(tasks):
            message = f"nothing in the payload's events leads to function {function}: add some"
            failures[function] = ChironError("no-input", message, functions=[function])
    return done


def _without(own: Collection[str], workflow: Workflow) -> Workflow:
    """Return `workflow` with the buckets `own` firing only when nothing else is left to run.

    These buckets have user-written triggers, which run where functions run, never here.
    """
    buckets, all_at_once = workflow.buckets or {}, {"size": sys.maxsize}
    declared = {
        name: its | {"trigger": "by-batch-size", "options": all_at_once} if name in own else its
        for name, its in buckets["buckets"].items()
    }
    return replace(workflow, buckets={**buckets, "buckets": declared})


def _with_input(error: ChironError, text: str) -> ChironError:
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}..."
    message = f"{error.message}; its input was {shown or 'empty'}"
    return ChironError(error.code, message, functions=error.functions, status=error.status)


class Typical(NamedTuple):
    """The task whose input is used to profile a function, and whether the function fails on it."""

    task: str
    fails: bool


def typical_tasks(workflow: Workflow, repeats: Sequence[WorkflowRun]) -> dict[str, Typical]:
    """Return the task whose input is used to profile each function that one request reached.

    It is the first task that uses the function. Of several instances of the task, it is the one
    whose time is nearest to their mean, over the `repeats` of the request. A failing instance is
    typical only if no instance of the function answers.
    """
    run = repeats[0]
    answering, failing = dict[str, list[str]](), dict[str, list[str]]()
    for name in run.inputs:
        if not run.trace:
            answering[name] = [name]
        elif any(name in each.outputs for each in repeats):
            answering.setdefault(task_of(name), []).append(name)
        elif name in run.took_ms:
            failing.setdefault(task_of(name), []).append(name)
    typical: dict[str, Typical] = {}
    for function in workflow.functions:
        names = [task.name for task in workflow.tasks if task.function == function]
        found = [(answering[name], False) for name in names if name in answering]
        found += [(failing[name], True) for name in names if name in failing]
        for instances, fails in found[:1]:
            took_ms = {name: _shortest_ms(repeats, name, fails=fails) for name in instances}
            typical[function] = Typical(_nearest_to_mean(took_ms), fails)
    return typical


def inputs_of(
    runs: Sequence[WorkflowRun], typical: Sequence[Mapping[str, Typical]]
) -> dict[str, dict[int, bytes]]:
    """Return the inputs of every function, by the index of each of `runs` that reached it."""
    requests: dict[str, dict[int, bytes]] = {}
    for place, (run, tasks) in enumerate(zip(runs, typical, strict=True)):
        for function, (name, _) in tasks.items():
            requests.setdefault(function, {})[place] = Request(run.inputs[name])
    return requests


def weighed(
    workflow: Workflow, repeats: Sequence[WorkflowRun], typical: Mapping[str, Typical]
) -> tuple[Instance, ...]:
    """Return the trace of the request, with each task's time relative to the typical task's."""
    counts = Counter[str]()

    def own(instance: Instance) -> Instance:
        if instance.task is None:
            return instance
        counts[instance.task] += 1
        name = f"{instance.task}#{counts[instance.task]}"
        usual = typical.get(workflow.function_of(instance.task), Typical(name, instance.failed))
        usual_ms = _shortest_ms(repeats, usual.task, fails=usual.fails)
        its_ms = _shortest_ms(repeats, name, fails=instance.failed)
        if its_ms is None or not usual_ms:
            return instance
        if abs(its_ms - usual_ms) <= max(_NOISE_MS, _NOISE * min(its_ms, usual_ms)):
            return instance
        return instance.model_copy(update={"work": float(f"{its_ms / usual_ms:.2g}")})

    return tuple(map(own, repeats[0].trace))


def failures_in(workflow: Workflow, runs: Sequence[WorkflowRun]) -> list[str]:
    """Return a line for each function that failed some of its calls and answered other calls."""
    calls, failed = Counter[str](), Counter[str]()
    for each in (each for run in runs for each in run.trace):
        if each.task is not None:
            function = workflow.function_of(each.task)
            calls[function] += 1
            failed[function] += each.failed
    return [
        f"function {name} failed at {failed[name]} of {count} calls"
        for name, count in calls.items()
        if 0 < failed[name] < count
    ]


def _shortest_ms(repeats: Sequence[WorkflowRun], name: str, *, fails: bool) -> float | None:
    """Return a task's shortest time when it answered or, with `fails`, when it failed.

    None if any of `repeats` lacks the task.
    """
    if not all(name in run.took_ms for run in repeats):
        return None
    times_ms = (run.took_ms[name] for run in repeats if (name not in run.outputs) == fails)
    return min(times_ms, default=None)


def _nearest_to_mean(took_ms: Mapping[str, float | None]) -> str:
    known = {name: ms for name, ms in took_ms.items() if ms is not None}
    if not known:
        return [*took_ms][len(took_ms) // 2]
    mean_ms = fmean(known.values())
    return min(known, key=lambda name: abs(known[name] - mean_ms))

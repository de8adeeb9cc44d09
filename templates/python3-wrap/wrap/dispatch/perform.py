"""Performs the commands of an execution's run, with one function for each command."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from wrap.core import commands as do
from wrap.core import events as on
from wrap.dispatch.live import fail_later
from wrap.dispatch.results import failure
from wrap.net.messages import Request

if TYPE_CHECKING:
    from wrap.dispatch.execution import Execution


def _call_wrap(execution: Execution, command: do.CallWrap) -> None:
    call = command.call
    objects = {key: execution.data[key] for key in call.needs}
    request = Request(execution.ident, call.tasks, objects, call.gives)
    execution.threads.unsent.append((str(call.place), request))


def _begin(execution: Execution, command: do.Begin) -> list[int] | None:
    step = command.step

    def go_on() -> None:
        execution.threads.start(_begin_if_let(execution, command))

    if execution.threads.send_first(step.begins, go_on):
        return None
    return _begin_if_let(execution, command)


def _begin_if_let(execution: Execution, command: do.Begin) -> list[int]:
    """Begin the tasks of a step, unless backpressure holds their outputs back."""
    peers, step = execution.peers, command.step

    def let_go() -> None:
        ready = on.Ready(time.monotonic(), step, renewed=True)
        execution.threads.start(execution.tell(ready))

    if peers is not None and peers.protocol.pressure.rules.matters:
        senders = sum(map(peers.sharing.sends, step.begins))
        begin = partial(execution.event, let_go)
        if senders and not peers.protocol.pressure.may_begin(
            senders, begin, lambda: execution.over
        ):
            return execution.tell(on.HeldBack(step.begins))
    return execution.tell(on.Ready(time.monotonic(), step))


def _set_timer(execution: Execution, command: do.SetTimer) -> None:
    passed = lambda: execution.tell(on.DelayPassed(time.monotonic(), command.number))  # noqa: E731
    when = time.monotonic() + command.seconds
    timer = execution.runtime.loop.call_at(when, partial(execution.from_loop, passed))
    execution.timers[command.number] = timer


def _accept(execution: Execution, command: do.Accept) -> None:
    result = command.answer
    # A machine can have any number of instances, whose results nobody asks for.
    if command.has_output or execution.is_told or not execution.run.program.decides:
        execution.results.append(result)
    if result.wrap == execution.runtime.wrap.name:  # else execution own wrap counts it
        execution.runtime.metrics.ran(result)
    if not command.has_output:
        result.output = None


def _accept_all(execution: Execution, command: do.AcceptAll) -> None:
    execution.results += command.answers


def _give(execution: Execution, command: do.Give) -> None:
    if execution.peers is not None:
        execution.peers.send_outputs(execution, command.answers, last=command.last)


def _record_failure(execution: Execution, command: do.RecordFailure) -> None:
    execution.results.append(failure(execution, command.task, command.error))


def _count_failures(execution: Execution, command: do.CountFailures) -> None:
    for number in command.tasks:
        function = execution.runtime.wrap.function_of(number)
        execution.runtime.metrics.failed_runs.add(function, command.code)


def _lose_worker(execution: Execution, command: do.LoseWorker) -> None:
    execution.workers.lose(command.process, command.late, command.error)


def _fail_by_worker(execution: Execution, command: do.FailByWorker) -> None:
    execution.end_with(partial(execution.workers.failure, execution, command.process))


def _begin_attempt(execution: Execution, command: do.BeginAttempt) -> None:
    """Break off the live streams of earlier attempts."""
    if execution.broker is not None:
        execution.broker.begin_attempt(execution.streams, command.component, command.attempt)


def _report_broken(execution: Execution, command: do.ReportBroken) -> None:
    if execution.peers is not None:
        execution.peers.streams_broke(execution, command.task, command.attempt, command.error)


def _finish(_: Execution, command: do.Finish) -> None:
    raise command.error


#: Kind of command -> the function that performs it. The functions return the tasks that begin in
#: this process, and raise TaskError if the execution has failed.
PERFORM: Mapping[type, Callable[[Execution, Any], list[int] | None]] = {
    do.CallWrap: _call_wrap,
    do.Begin: _begin,
    do.CallWorker: lambda execution, command: execution.workers.call(command.call),
    do.StartTasks: lambda execution, command: execution.runtime.wrap.run_for(command.tasks),
    do.SetTimer: _set_timer,
    do.CancelTimer: lambda execution, command: execution.timers.pop(command.number).cancel(),
    do.WakeAt: lambda execution, command: execution.wake_at(command.when),
    do.Keep: lambda execution, command: execution.data.add({command.task: command.output}),
    do.Drop: lambda execution, command: execution.data.drop(command.key),
    do.Accept: _accept,
    do.AcceptAll: _accept_all,
    do.Give: _give,
    do.RecordFailure: _record_failure,
    do.CountFailures: _count_failures,
    do.LoseWorker: _lose_worker,
    do.FailByWorker: _fail_by_worker,
    do.Abandon: lambda execution, command: execution.threads.abandon(command.task),
    do.BeginAttempt: _begin_attempt,
    do.ReportBroken: _report_broken,
    do.FailLater: lambda execution, command: fail_later(execution, command.error),
    do.Finish: _finish,
}

"""The simulation of `predictor.simulator` compiled: the same answers in microseconds.

Written anew for that and not translated: threads are numbers, what they do next lies in heaps, and
what shares the cores ends by a clock that runs as fast as the cores let it (virtual time). It
records nothing. Numbers of threads go up from process to process, and the starter of a process
comes before its threads, which is also their order at one instant.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from predictor.compiling import entry, inner
from predictor.heap import ENTRY, pop_until, push
from predictor.records import BLOCK, CPU, GIL, NATIVE, THREAD, Records
from predictor.simulator import CLOCK_STEP, INSTANT_MS

#: Nobody: no holder, no waiter.
_NONE = -1
#: Before its own periods, a thread is started and has the GIL for an instant.
_BEFORE = 2


class _State(NamedTuple):
    clock: Records
    gils: Records
    threads: Records
    periods: Records
    blocked: Records  # a heap by time
    computing: Records  # a heap of those in native periods, by virtual time


@entry
def simulate(
    periods: Records,
    first: NDArray[np.int64],
    functions: NDArray[np.int64],
    sizes: NDArray[np.int64],
    starts_ms: NDArray[np.float64],
    computing_ms: NDArray[np.float64],
    forking_ms: NDArray[np.float64],
    together: NDArray[np.int64],
    cores: int,
    clock: Records,
) -> NDArray[np.float64]:
    """When each process has finished all its threads, in milliseconds.

    Parameters
    ----------
    periods, first
        Those of function f are ``periods[first[f] : first[f + 1]]``.
    functions
        The function of every thread, process by process.
    sizes, starts_ms, computing_ms, forking_ms
        How many threads each process has, when it comes to life, what it computes first, and what
        is computed for it before that.
    together
        How many processes there are in each of one or more simulations, which follow one another.
    cores
        How many cores the processes of one simulation share.
    clock
        One record with the constants of the interpreter and the cores.
    """
    ends_ms = np.empty(len(sizes))
    process = function = 0
    for processes in together:
        last, after = process + processes, function
        for index in range(process, last):
            after += sizes[index]
        count = processes + after - function
        gils, threads = np.zeros(processes, GIL), np.empty(count, THREAD)
        blocked, computing = np.empty(count + 1, ENTRY), np.empty(count + 1, ENTRY)
        blocked[0].item = computing[0].item = 0
        state = _State(clock.copy(), gils, threads, periods, blocked, computing)
        state.clock[0].cores = cores
        for index in range(processes):
            gils[index].computing_ms = computing_ms[process + index]
            gils[index].forking_ms = forking_ms[process + index]
        _fill(state, first, functions[function:after], sizes[process:last], starts_ms[process:last])
        _run(state, np.empty(count, np.int64))
        for index in range(processes):
            ends_ms[process + index] = gils[index].end_ms
        process, function = last, after
    return ends_ms


@inner
def _run(state: _State, due: NDArray[np.int64]) -> None:
    clock = state.clock[0]
    while _step(state):
        for index in range(pop_until(state.computing, clock.virtual_ms + clock.instant_ms, due)):
            _next_period(state, due[index])
        for index in range(pop_until(state.blocked, clock.now_ms + clock.instant_ms, due)):
            _next_period(state, due[index])


@inner
def _fill(
    state: _State,
    first: NDArray[np.int64],
    functions: NDArray[np.int64],
    sizes: NDArray[np.int64],
    starts_ms: NDArray[np.float64],
) -> None:
    number = function = 0
    for process in range(len(sizes)):
        gil, starter = state.gils[process], state.threads[number]
        gil.holder = gil.last_holder = gil.head = _NONE
        gil.end_ms = starts_ms[process]
        gil.unfinished = sizes[process]
        gil.starter, gil.unstarted = number, number + 1
        starter.process, starter.begin, starter.end = process, _NONE, number + sizes[process]
        gil.follower = _NONE
        if process > 0 and gil.forking_ms > 0.0 and state.gils[process - 1].forking_ms > 0.0:
            state.gils[process - 1].follower = number
        else:
            push(state.blocked, starts_ms[process], number)
        number += 1
        for _ in range(sizes[process]):
            thread, which = state.threads[number], functions[function]
            thread.process, thread.begin, thread.end = process, first[which], first[which + 1]
            thread.at = thread.begin - _BEFORE - 1
            number += 1
            function += 1


@inner
def _step(state: _State) -> bool:
    """Go to the next event and settle what the holders do then; False at the end of all."""
    unfinished, running, waiting = 0, _runnable(state), 0
    for process in range(len(state.gils)):
        unfinished += state.gils[process].unfinished
        waiting |= state.gils[process].head != _NONE
    if unfinished == 0:
        return False
    clock = state.clock[0]
    rate = min(1.0, clock.cores / max(1, running))
    if running + waiting > clock.cores > 1:
        rate /= 1.0 + clock.wasted_cores
    until_ms = _next_event(state, rate)
    done_ms = (until_ms - clock.now_ms) * rate
    clock.now_ms = until_ms
    clock.virtual_ms += done_ms
    clock.instant_ms = max(INSTANT_MS, CLOCK_STEP * until_ms)
    for process in range(len(state.gils)):
        if state.gils[process].holder != _NONE:
            _compute(state, process, done_ms)
    return True


@inner
def _runnable(state: _State) -> int:
    """How many threads want to compute and do not wait for a GIL."""
    running = state.computing[0].item
    for process in range(len(state.gils)):
        running += state.gils[process].holder != _NONE
    return int(running)


@inner
def _next_event(state: _State, rate: float) -> float:
    """When the next period ends or the GIL is next asked for."""
    clock, event_ms = state.clock[0], np.inf
    if state.blocked[0].item > 0:
        event_ms = state.blocked[1].key
    if state.computing[0].item > 0:
        left_ms = state.computing[1].key - clock.virtual_ms
        event_ms = min(event_ms, clock.now_ms + left_ms / rate)
    for process in range(len(state.gils)):
        gil = state.gils[process]
        if gil.holder != _NONE:
            left_ms = gil.switching_ms
            if left_ms == 0.0:
                left_ms = state.threads[gil.holder].remaining_ms
            event_ms = min(event_ms, clock.now_ms + left_ms / rate, _drop_time(state, process))
    return float(max(event_ms, clock.now_ms))


@inner
def _drop_time(state: _State, process: int) -> float:
    """When the holder will have to drop the GIL: one interval after a waiter saw no switch."""
    gil = state.gils[process]
    if gil.head == _NONE or gil.switching_ms > 0.0:
        return np.inf
    asked_ms = max(gil.taken_ms, state.threads[gil.head].since_ms)
    return float(asked_ms + state.clock[0].switch_interval_ms)


@inner
def _compute(state: _State, process: int, done_ms: float) -> None:
    """Let the holder compute; move it on if its period is over, or let it hand the GIL over."""
    clock, gil = state.clock[0], state.gils[process]
    holder = state.threads[gil.holder]
    if gil.switching_ms > 0.0:
        left_ms = gil.switching_ms - done_ms
        gil.switching_ms = left_ms if left_ms > clock.instant_ms else 0.0
        gil.taken_ms = clock.now_ms
    else:
        holder.remaining_ms -= done_ms
    if gil.switching_ms == 0.0 and holder.remaining_ms <= clock.instant_ms:
        _next_period(state, gil.holder)
    elif _drop_time(state, process) <= clock.now_ms + clock.instant_ms:
        _wait(state, gil.holder)
        _release(state, process)


@inner
def _next_period(state: _State, number: int) -> None:
    thread = state.threads[number]
    holds = state.gils[thread.process].holder == number
    if thread.begin == _NONE:
        wants = _next_start(state, thread.process, holds)
    else:
        wants = _next_of_thread(state, number)
    if wants and not holds:
        _wait(state, number)
    elif holds and not wants:
        _release(state, thread.process)


@inner
def _next_start(state: _State, process: int, started: bool) -> bool:
    """Go on forking or starting threads; whether the starter wants the GIL for the next one."""
    clock, gil = state.clock[0], state.gils[process]
    if gil.forking_ms > 0.0:
        push(state.computing, clock.virtual_ms + gil.forking_ms, gil.starter)
        gil.forking_ms = 0.0
        gil.forked = 1
        return False
    if gil.forked and gil.follower != _NONE:
        push(state.blocked, clock.now_ms, gil.follower)
        gil.follower = _NONE
    if gil.computing_ms > 0.0:
        push(state.computing, clock.virtual_ms + gil.computing_ms, gil.starter)
        gil.computing_ms = 0.0
        return False
    if started:
        state.threads[gil.unstarted].at += 1
        push(state.blocked, clock.now_ms + max(0.0, clock.thread_ready_ms), gil.unstarted)
        gil.unstarted += 1
        if clock.thread_ready_ms >= 0.0:
            gil.parked = 1
            return False
    starter = state.threads[gil.starter]
    starter.remaining_ms = clock.thread_startup_ms
    return bool(gil.unstarted <= starter.end)


@inner
def _next_of_thread(state: _State, number: int) -> bool:
    """Begin the next period of a thread; whether it needs the GIL."""
    clock, thread = state.clock[0], state.threads[number]
    gil = state.gils[thread.process]
    thread.at += 1
    if thread.at < thread.begin:
        thread.remaining_ms = 0.0
        return True
    if thread.at == thread.begin and gil.parked:
        gil.parked = 0
        if _next_start(state, thread.process, False):
            _wait(state, gil.starter)
    if thread.at == thread.end:
        gil.unfinished -= 1
        gil.end_ms = clock.now_ms
        return False
    period = state.periods[thread.at]
    if period.kind != CPU and _gets_gil_back(state, number, period.duration_ms):
        gil.taken_ms = clock.now_ms
        thread.remaining_ms = period.duration_ms
        return True
    if period.kind == NATIVE:
        push(state.computing, clock.virtual_ms + period.duration_ms, number)
    elif period.kind == BLOCK:
        push(state.blocked, clock.now_ms + period.duration_ms, number)
    thread.remaining_ms = period.duration_ms
    return bool(period.kind == CPU)


@inner
def _gets_gil_back(state: _State, number: int, duration_ms: float) -> bool:
    """Whether a thread lets its GIL go for too short a time for those who wait for it."""
    clock, gil = state.clock[0], state.gils[state.threads[number].process]
    if duration_ms >= clock.short_release_ms or gil.holder != number or gil.head == _NONE:
        return False
    return bool(_runnable(state) >= clock.cores)


@inner
def _wait(state: _State, number: int) -> None:
    thread = state.threads[number]
    gil = state.gils[thread.process]
    thread.since_ms = state.clock[0].now_ms
    thread.behind = _NONE
    if gil.head == _NONE:
        gil.head = number
    else:
        state.threads[gil.tail].behind = number
    gil.tail = number
    if gil.holder == _NONE:
        _take(state, thread.process)


@inner
def _release(state: _State, process: int) -> None:
    gil = state.gils[process]
    gil.last_holder = gil.holder
    gil.holder = _NONE
    if gil.head != _NONE:
        _take(state, process)


@inner
def _take(state: _State, process: int) -> None:
    """Give the GIL to who has waited longest."""
    gil = state.gils[process]
    gil.holder = gil.head
    gil.head = state.threads[gil.holder].behind
    gil.taken_ms = state.clock[0].now_ms
    if gil.last_holder != _NONE and gil.last_holder != gil.holder:
        gil.switching_ms = state.clock[0].switch_cost_ms

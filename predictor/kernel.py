"""The simulation: threads under the GIL, of several processes on shared cores; compiled by numba.

A discrete-event simulation that generalises Chiron's Algorithm 1. A ``cpu`` period needs the GIL
and a core, a ``native`` period a core only, a ``block`` period neither. Threads and processes that
a function starts itself are helpers, which need a core each. The runnable threads of all processes
share the cores equally (processor sharing). A waiter asks for the GIL after the switch interval;
the holder drops it then, and before every period that is not ``cpu``.

While more threads want to compute than there are cores, some core idles now and then all the same:
a thread that is woken waits for the core that it was woken on, though another is free (Lozi et al.,
The Linux Scheduler: a Decade of Wasted Cores, EuroSys'16). All computing then takes longer by one
share.

Three things are as CPython does them and not as Algorithm 1 has them:

- The GIL goes to the thread that has waited longest. Algorithm 1 gives it to the one that has had
  the least CPU, as the operating system's scheduler gives cores; but a thread that waits for the
  GIL sleeps on a condition variable, which knows nothing of that. In CPython 3.11 a thread that has
  computed for a second gets the GIL as often as three that have just begun.
- A thread that lets the GIL go wakes the next one, which takes it when it runs: on a free core at
  once. Where all are busy, a thread that has let it go for a short call only finds it free and goes
  on; the other was woken in vain, and begins its interval anew. A function of many short calls is
  not held up then.
- ``Thread.start`` returns when the new thread has run far enough to say so. Until then the
  starter waits, first for the thread, then for the GIL, which the thread keeps as long as others
  may. So new threads that compute begin a switch interval apart. Threads that wait already are
  only handed their work. On the published testbed, waiting for new threads takes the mean error
  from 6.4 to 5.8 % (mr) and leaves it at 0.6 % (finra5), the other constants fitted to each.

Threads are numbers, what they do next lies in heaps, and what shares the cores ends by a clock that
runs as fast as the cores let it (virtual time). Numbers of threads go up from process to process,
and the starter of a process comes before its threads, which is also their order at one instant.
Helpers come before all of them: their items are negative, see `_start_helpers`.

This module is loaded only to be compiled: see `predictor.compiling`. It allocates nothing; its
caller, `predictor.simulator`, hands it all memory.

References
----------
Chiron (SC'23), §3.3 and Algorithm 1; CPython's ``ceval_gil`` and ``threading.Thread.start``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import carray, from_dtype, types  # type: ignore[attr-defined]
from numpy.typing import NDArray

from predictor.compiling import inner
from predictor.heap import pop_until, push
from predictor.records import (
    BLOCK,
    CLOCK,
    CPU,
    ENTRY,
    GIL,
    HELPER,
    JOIN,
    NATIVE,
    PERIOD,
    PROCESS,
    SPAN,
    START,
    STARTED,
    THREAD,
    WAIT_GIL,
    Record,
    Records,
)

#: Times closer than this are one instant; profiles have microseconds.
INSTANT_MS = 1e-9
#: So are those which a clock of double precision cannot tell apart, as a part of the time it shows.
CLOCK_STEP = 1e-15
#: Nobody: no holder, no waiter; and nothing that a thread does.
_NONE = -1
#: The end of a span that has not ended.
_UNKNOWN_MS = -1.0
#: Before its own periods, a thread is started and has the GIL for an instant.
_BEFORE = 2


class _State(NamedTuple):
    clock: Records
    gils: Records
    threads: Records
    periods: Records
    blocked: Records  # a heap by time
    computing: Records  # a heap of those in native periods, by virtual time
    spans: Records


def _pointer(record: Record) -> Any:
    fields = [*((n, np.int64) for n in record.integers), *((n, np.float64) for n in record.times)]
    return types.CPointer(from_dtype(np.dtype(fields)))  # type: ignore[no-untyped-call]


_INTEGERS: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
#: The types of what `simulate` gives and takes.
SIGNATURE = types.int64(
    *(_pointer(PERIOD), _INTEGERS, _pointer(CLOCK), _pointer(PROCESS), _INTEGERS, _INTEGERS),
    *(_pointer(GIL), _pointer(THREAD), _pointer(ENTRY), _pointer(ENTRY), _INTEGERS),
    *(_pointer(SPAN), types.int64, types.int64, types.int64),
)


def simulate(
    periods_at: Records,
    first_at: Records,
    clock_at: Records,
    processes_at: Records,
    together_at: Records,
    functions_at: Records,
    gils_at: Records,
    threads_at: Records,
    blocked_at: Records,
    computing_at: Records,
    due_at: Records,
    spans_at: Records,
    simulations: int,
    most: int,
    most_spans: int,
) -> int:
    """Write into every process when it has finished all its threads; how many spans there were.

    Each `..._at` is the address of an array.

    Parameters
    ----------
    periods_at, first_at
        Periods of function f are ``periods[first[f] : first[f + 1]]``.
    clock_at
        One record with the cores and constants; the kernel keeps the time there.
    processes_at
        Records of processes, which compete for the cores of their simulation.
    together_at, simulations
        How many processes there are in each of one or more simulations, which follow one another.
    functions_at
        The function of every thread, process by process.
    gils_at, threads_at
        Memory for as many as the largest simulation has; of threads one more for each process.
    blocked_at, computing_at, due_at, most
        Memory for `most` threads and helpers at once; heaps need one more.
    spans_at, most_spans
        Memory for the spans of the only simulation. Those that there is no place for are counted
        all the same; with `most_spans` 0 nothing is recorded.
    """
    first, functions = carray(first_at, 1 << 60), carray(functions_at, 1 << 60)
    processes, together = carray(processes_at, 1 << 60), carray(together_at, simulations)
    gils, threads = carray(gils_at, 1 << 60), carray(threads_at, 1 << 60)
    due = carray(due_at, most)
    periods, clock = carray(periods_at, 1 << 60), carray(clock_at, 1)
    blocked, computing = carray(blocked_at, most + 1), carray(computing_at, most + 1)
    spans = carray(spans_at, most_spans)
    process = function = 0
    for number in range(simulations):
        last, after = process + together[number], function
        for index in range(process, last):
            after += processes[index].size
        count = together[number] + after - function
        own = gils[: together[number]]
        state = _State(clock, own, threads[:count], periods, blocked, computing, spans)
        _fill(state, first, functions[function:after], processes[process:last])
        _run(state, due)
        for index in range(process, last):
            processes[index].end_ms = own[index - process].end_ms
        process, function = last, after
    return int(clock[0].spans)


@inner
def _run(state: _State, due: NDArray[np.int64]) -> None:
    clock = state.clock[0]
    while _step(state):
        for index in range(pop_until(state.computing, clock.virtual_ms + clock.instant_ms, due)):
            if due[index] < 0:
                _end_helper(state, due[index])
            else:
                _next_period(state, due[index])
        for index in range(pop_until(state.blocked, clock.now_ms + clock.instant_ms, due)):
            _next_period(state, due[index])


@inner
def _fill(
    state: _State, first: NDArray[np.int64], functions: NDArray[np.int64], processes: Records
) -> None:
    clock = state.clock[0]
    clock.now_ms = clock.virtual_ms = clock.core_ms = clock.instant_ms = 0.0
    clock.spans = state.blocked[0].item = state.computing[0].item = 0
    number = function = 0
    for index in range(len(processes)):
        process, gil, starter = processes[index], state.gils[index], state.threads[number]
        gil.holder = gil.last_holder = gil.head = gil.follower = _NONE
        gil.end_ms = process.start_ms
        gil.unfinished = process.size
        gil.starter, gil.unstarted = number, number + 1
        gil.parked = gil.forked = 0
        gil.taken_ms = gil.switching_ms = 0.0
        gil.computing_ms, gil.forking_ms = process.computing_ms, process.forking_ms
        starter.process, starter.begin, starter.end = index, _NONE, number + process.size
        starter.doing, starter.since_ms = _NONE, process.start_ms
        if index > 0 and gil.forking_ms > 0.0 and processes[index - 1].forking_ms > 0.0:
            state.gils[index - 1].follower = number
        else:
            push(state.blocked, process.start_ms, number)
        number += 1
        for _ in range(process.size):
            thread, which = state.threads[number], functions[function]
            thread.process, thread.begin, thread.end = index, first[which], first[which + 1]
            thread.at = thread.begin - _BEFORE - 1
            thread.doing, thread.helpers, thread.since_ms = _NONE, 0, 0.0
            number += 1
            function += 1


@inner
def _step(state: _State) -> bool:
    """Go to the next event and settle what the holders do then; False at the end of all."""
    unfinished, running, waiting = 0, _runnable(state), False
    for process in range(len(state.gils)):
        unfinished += state.gils[process].unfinished
        waiting |= state.gils[process].head != _NONE
    if unfinished == 0:
        return False
    clock = state.clock[0]
    rate = share = min(1.0, clock.cores / max(1, running))
    if waiting and running >= clock.cores > 1:
        rate /= 1.0 + clock.contention_overhead
    until_ms = _next_event(state, rate)
    clock.core_ms += (until_ms - clock.now_ms) * share
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
        _note(state, gil.holder, CPU)
        _wait(state, gil.holder)
        _release(state, process)


@inner
def _next_period(state: _State, number: int) -> None:
    thread = state.threads[number]
    _note(state, number, thread.doing)
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
    starter = state.threads[gil.starter]
    if gil.forking_ms > 0.0:
        push(state.computing, clock.virtual_ms + gil.forking_ms, gil.starter)
        starter.doing = NATIVE
        gil.forking_ms = 0.0
        gil.forked = 1
        return False
    if gil.forked and gil.follower != _NONE:
        _note(state, gil.follower, START)
        push(state.blocked, clock.now_ms, gil.follower)
        gil.follower = _NONE
    if gil.computing_ms > 0.0:
        push(state.computing, clock.virtual_ms + gil.computing_ms, gil.starter)
        starter.doing = NATIVE
        gil.computing_ms = 0.0
        return False
    if started:
        thread = state.threads[gil.unstarted]
        thread.at += 1
        thread.doing, thread.since_ms = START, clock.now_ms
        push(state.blocked, clock.now_ms + max(0.0, clock.thread_ready_ms), gil.unstarted)
        gil.unstarted += 1
        if clock.thread_ready_ms >= 0.0:
            gil.parked = 1
            starter.doing = STARTED
            return False
    starter.doing, starter.remaining_ms = CPU, clock.thread_startup_ms
    return bool(gil.unstarted <= starter.end)


@inner
def _next_of_thread(state: _State, number: int) -> bool:
    """Begin the next period of a thread; whether it needs the GIL."""
    clock, thread = state.clock[0], state.threads[number]
    gil = state.gils[thread.process]
    thread.at += 1
    if thread.at < thread.begin:
        thread.doing, thread.remaining_ms = CPU, 0.0
        return True
    if thread.at == thread.begin and gil.parked:
        gil.parked = 0
        _note(state, gil.starter, STARTED)
        if _next_start(state, thread.process, False):
            _wait(state, gil.starter)
    _start_helpers(state, number)
    if thread.at == thread.end:
        gil.unfinished -= 1
        gil.end_ms = clock.now_ms
        return False
    period = state.periods[thread.at]
    thread.doing = period.kind
    if period.kind == JOIN:
        return False
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
def _start_helpers(state: _State, number: int) -> None:
    """Start the helpers that come next; nobody waits for helpers that are done.

    Where a helper has its span, and whose it is, is in its item, which is less the lower the number
    of its thread.
    """
    clock, thread, places = state.clock[0], state.threads[number], len(state.spans) + 1
    while thread.at < thread.end:
        period = state.periods[thread.at]
        if period.kind == HELPER:
            place = min(clock.spans, places - 1)
            _record(state, number, HELPER, clock.now_ms, _UNKNOWN_MS, clock.core_ms)
            item = (number - len(state.threads)) * places + place
            push(state.computing, clock.virtual_ms + period.duration_ms, item)
            thread.helpers += 1
        elif period.kind != JOIN or thread.helpers > 0:
            return
        thread.at += 1


@inner
def _end_helper(state: _State, item: int) -> None:
    """A helper of a thread is done; the thread may have waited for it."""
    places = len(state.spans) + 1
    thread_less_all, place = item // places, item % places
    number = thread_less_all + len(state.threads)
    clock, thread = state.clock[0], state.threads[number]
    if place < len(state.spans):
        span = state.spans[place]
        span.end_ms = clock.now_ms
        had_ms = clock.core_ms - span.wait_core_ms
        span.wait_core_ms = max(0.0, span.end_ms - span.start_ms - had_ms)
    thread.helpers -= 1
    if thread.helpers == 0 and thread.at < thread.end and state.periods[thread.at].kind == JOIN:
        _next_period(state, number)


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
    """Give the GIL to the thread that has waited longest."""
    gil = state.gils[process]
    gil.holder = gil.head
    gil.head = state.threads[gil.holder].behind
    _note(state, gil.holder, WAIT_GIL)
    gil.taken_ms = state.clock[0].now_ms
    if gil.last_holder != _NONE and gil.last_holder != gil.holder:
        gil.switching_ms = state.clock[0].switch_cost_ms


@inner
def _note(state: _State, number: int, kind: int) -> None:
    """Record what a thread has done since it began to, and that it begins something else."""
    clock, thread = state.clock[0], state.threads[number]
    elapsed_ms = clock.now_ms - thread.since_ms
    if len(state.spans) > 0 and kind != _NONE and elapsed_ms > 0.0:
        wait_ms = 0.0
        if kind in (CPU, NATIVE):
            wait_ms = max(0.0, elapsed_ms - (clock.core_ms - thread.since_core_ms))
        _record(state, number, kind, thread.since_ms, clock.now_ms, wait_ms)
    thread.since_ms, thread.since_core_ms = clock.now_ms, clock.core_ms


@inner
def _record(
    state: _State, number: int, kind: int, start_ms: float, end_ms: float, wait_core_ms: float
) -> None:
    """Write a span where there is a place for it."""
    clock, thread = state.clock[0], state.threads[number]
    if clock.spans < len(state.spans):
        span = state.spans[clock.spans]
        span.process, span.kind = thread.process, kind
        span.thread = number - state.gils[thread.process].starter - 1
        span.start_ms, span.end_ms, span.wait_core_ms = start_ms, end_ms, wait_core_ms
    clock.spans += 1

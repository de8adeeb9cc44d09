"""Threads: starts the threads of tasks, and steps through their periods."""

from __future__ import annotations

from chiron.predictor.compiling import inner
from chiron.predictor.kernel.admission import count_done
from chiron.predictor.kernel.cores import (
    compute_beside,
    gets_gil_back,
    group_of,
    note,
    record,
    release,
    wait,
)
from chiron.predictor.kernel.heap import push
from chiron.predictor.kernel.results import arrive
from chiron.predictor.kernel.state import BEFORE, BEING_FORKED, FORKED, NONE, State
from chiron.predictor.records import AWAIT, BLOCK, CPU, EMIT, HELPER, JOIN, NATIVE, START, STARTED

#: The end of an open span.
_UNKNOWN_MS = -1.0
#: An awaited item is counted twice: by the awaiting task's start, and by its own event.
_BOTH = 2


@inner
def unstarted(state: State, number: int) -> bool:
    """Whether the thread of a task still waits for its starter."""
    thread = state.threads[number]
    return bool(thread.at == thread.begin - BEFORE - 1)


@inner
def enqueue(state: State, number: int) -> None:
    """Queue the thread of a task for its starter.

    An idle process hands its GIL over without cost.
    """
    thread = state.threads[number]
    process = state.processes[thread.process]
    if process.unfinished == 0:
        process.last_holder = NONE
    process.unfinished += 1
    thread.behind = NONE
    if process.queue == NONE:
        process.queue = number
    else:
        state.threads[process.queued].behind = number
    process.queued = number
    if process.idle:
        process.idle = 0
        if _next_start(state, thread.process, False):
            wait(state, thread.process)


@inner
def next_period(state: State, number: int) -> None:
    """End the activity of a thread or starter, and begin its next one."""
    thread = state.threads[number]
    process = state.processes[thread.process]
    note(state, number, thread.doing)
    holds = process.holder == number
    if number < len(state.processes):
        wants = _next_start(state, number, holds)
    else:
        wants = _next_of_thread(state, number)
    if wants and not holds:
        wait(state, number)
    elif holds and not wants:
        release(state, thread.process)
    elif holds:
        process.left_ms = thread.remaining_ms


@inner
def _next_start(state: State, number: int, started: bool) -> bool:
    """Continue a starter: fork, or start threads. Return whether it needs the GIL next."""
    clock, process, starter = state.clock[0], state.processes[number], state.threads[number]
    if process.forking_ms > 0.0:
        compute_beside(state, process.group, process.forking_ms, number)
        starter.doing, process.forking_ms = NATIVE, 0.0
        return False
    if process.forked == BEING_FORKED:
        process.forked = FORKED
        if process.follower != NONE:
            push(state.blocked, clock.now_ms, process.follower)
    if process.computing_ms > 0.0:
        compute_beside(state, process.group, process.computing_ms, number)
        starter.doing, process.computing_ms = NATIVE, 0.0
        return False
    if started:
        _start_first(state, number)
        if clock.thread_ready_ms < 0.0:
            starter.doing = NONE
        else:
            process.parked = 1
            starter.doing = STARTED
        return False
    if process.queue == NONE:
        process.idle = 1
        starter.doing = NONE
        return False
    starter.doing, starter.remaining_ms = CPU, clock.thread_startup_ms
    return True


@inner
def _start_first(state: State, number: int) -> None:
    """Start the first queued thread of a process."""
    clock, process = state.clock[0], state.processes[number]
    item = process.queue
    thread = state.threads[item]
    process.queue = thread.behind
    thread.at += 1
    thread.doing, thread.since_ms = START, clock.now_ms
    push(state.blocked, clock.now_ms + max(0.0, clock.thread_ready_ms), item)


@inner
def _next_of_thread(state: State, number: int) -> bool:
    """Begin the next period of a thread; return whether it needs the GIL."""
    clock, thread = state.clock[0], state.threads[number]
    process = state.processes[thread.process]
    thread.at += 1
    called = clock.thread_ready_ms < 0.0
    if thread.at < thread.begin:
        thread.doing, thread.remaining_ms = CPU, 0.0
        if called and process.queue != NONE:
            thread.remaining_ms = clock.thread_startup_ms
        return True
    if thread.at == thread.begin and called:
        process.begun, process.begun_ms = number, clock.now_ms
        if process.queue == NONE:
            process.idle = 1
        else:
            _start_first(state, thread.process)
    elif thread.at == thread.begin and process.parked:
        process.parked = 0
        note(state, thread.process, STARTED)
        if _next_start(state, thread.process, False):
            wait(state, thread.process)
    _start_helpers(state, number)
    if thread.at == thread.end:
        _finish(state, number)
        return False
    period = state.periods[thread.at]
    thread.doing = period.kind
    if period.kind == JOIN:
        return False
    if period.kind == AWAIT:
        state.threads[number + int(period.duration_ms)].behind = number
        return False
    duration_ms = thread.ratio * period.duration_ms
    if period.kind != BLOCK:
        duration_ms *= thread.slower
    if period.kind != CPU and gets_gil_back(state, number, duration_ms):
        process.taken_ms = clock.now_ms
        thread.remaining_ms = duration_ms
        return True
    if period.kind == NATIVE:
        compute_beside(state, process.group, duration_ms, number)
    elif period.kind == BLOCK:
        push(state.blocked, clock.now_ms + duration_ms, number)
    thread.remaining_ms = duration_ms
    return bool(period.kind == CPU)


@inner
def _finish(state: State, number: int) -> None:
    """End a task, and deliver its result to the nodes that await it."""
    process = state.processes[state.threads[number].process]
    process.unfinished -= 1
    process.end_ms = state.clock[0].now_ms
    _give(state, number)


@inner
def start_awaited(state: State, number: int) -> None:
    """Count one of the two starts of an awaited item; the second delivers it to its waiter."""
    thread = state.threads[number]
    thread.helpers += 1
    if thread.helpers == _BOTH:
        _give(state, number)
        if thread.behind != NONE:
            push(state.blocked, state.clock[0].now_ms, thread.behind)


@inner
def _give(state: State, number: int) -> None:
    """Deliver the result of a task, or an early output."""
    clock, thread = state.clock[0], state.threads[number]
    count_done(state, thread.slot)
    thread.end_ms = clock.now_ms
    for link in range(thread.links, thread.links_end):
        arrive(state, state.links[link], number)


@inner
def _start_helpers(state: State, number: int) -> None:
    """Start the next helpers, emit outputs, and skip awaits and joins that are complete.

    The item of a helper encodes its thread and its span; lower threads have lower items.
    """
    clock, thread, places = state.clock[0], state.threads[number], len(state.spans) + 1
    group = state.processes[thread.process].group
    while thread.at < thread.end:
        period = state.periods[thread.at]
        if period.kind == HELPER:
            place = min(clock.spans, places - 1)
            core_ms = state.groups[group].core_ms
            record(state, number, HELPER, clock.now_ms, _UNKNOWN_MS, core_ms)
            item = (number - len(state.threads)) * places + place
            duration_ms = thread.ratio * thread.slower * period.duration_ms
            compute_beside(state, group, duration_ms, item)
            thread.helpers += 1
        elif period.kind == EMIT:
            _give(state, number + int(period.duration_ms))
        elif period.kind == AWAIT:
            if state.threads[number + int(period.duration_ms)].helpers < _BOTH:
                return
        elif period.kind != JOIN or thread.helpers > 0:
            return
        thread.at += 1


@inner
def end_helper(state: State, item: int) -> None:
    """End a helper; continue its thread if that waits for the last helper."""
    places = len(state.spans) + 1
    thread_less_all, place = item // places, item % places
    number = thread_less_all + len(state.threads)
    clock, thread = state.clock[0], state.threads[number]
    if place < len(state.spans):
        span = state.spans[place]
        span.end_ms = clock.now_ms
        had_ms = group_of(state, thread.process).core_ms - span.wait_core_ms
        span.wait_core_ms = max(0.0, span.end_ms - span.start_ms - had_ms)
    thread.helpers -= 1
    if thread.helpers == 0 and thread.at < thread.end and state.periods[thread.at].kind == JOIN:
        next_period(state, number)

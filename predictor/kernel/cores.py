"""Scheduling of GILs and of the cores that processes share."""

from __future__ import annotations

import numpy as np

from chiron.predictor.compiling import inner
from chiron.predictor.kernel.heap import push
from chiron.predictor.kernel.state import NONE, State
from chiron.predictor.records import CPU, NATIVE, WAIT_GIL, Records


@inner
def group_of(state: State, process: int) -> Records:
    """Return the group whose cores a process shares."""
    return state.groups[state.processes[process].group]


@inner
def pace(state: State, number: int) -> float:
    """Update the rate of a group's virtual time; return the next end of computing without a GIL."""
    clock, group = state.clock[0], state.groups[number]
    group.rate = group.share = min(1.0, group.cores / group.running)
    if group.running + (group.waiting > 0) > group.cores > 1:
        group.rate /= 1.0 + clock.contention_overhead
    heap = state.computing[group.heap : group.heap + group.room]
    if heap[0].item == 0:
        return np.inf
    return float(clock.now_ms + (heap[1].key - group.virtual_ms) / group.rate)


@inner
def drop_time(state: State, number: int) -> float:
    """Return when the holder must drop the GIL: one interval after the last switch or request.

    A cooperative function never must.
    """
    process = state.processes[number]
    if process.switching_ms > 0.0:
        return np.inf
    if process.holder >= state.clock[0].processes:  # else the holder is a starter
        function = state.threads[process.holder].function
        if function >= 0 and state.functions[function].cooperative:
            return np.inf
    return float(max(process.taken_ms, process.asked_ms) + state.clock[0].switch_interval_ms)


@inner
def gets_gil_back(state: State, number: int, duration_ms: float) -> bool:
    """Whether a thread releases the GIL too briefly for waiters to take it.

    They need a core to wake up on. A thread whose task has not begun leaves the GIL to the task
    that began last, for one interval (`wrap.core.start_queue`).
    """
    clock, process = state.clock[0], state.processes[state.threads[number].process]
    if duration_ms >= clock.short_release_ms:
        return False
    if process.holder != number or process.head == NONE:
        return False
    group = state.groups[process.group]
    if group.running >= group.cores:
        return True
    if process.begun != number or process.head != process.tail:
        return False
    waiting = state.threads[process.head]
    alone = clock.now_ms < process.begun_ms + clock.switch_interval_ms
    return bool(alone and process.head >= clock.processes and waiting.at < waiting.begin)


@inner
def compute_beside(state: State, number: int, duration_ms: float, item: int) -> None:
    """Begin computing in a group for `duration_ms`, without a GIL."""
    group = state.groups[number]
    heap = state.computing[group.heap : group.heap + group.room]
    push(heap, group.virtual_ms + duration_ms, item)
    count_running(state, number, 1)


@inner
def count_running(state: State, number: int, more: int) -> None:
    """Add `more` to the runnable threads of a group, which is active if it has any."""
    clock, group = state.clock[0], state.groups[number]
    before = group.running
    group.running += more
    if before == 0 and group.running > 0:
        group.place = clock.active
        state.active[clock.active] = number
        clock.active += 1
    elif before > 0 and group.running == 0:
        clock.active -= 1
        last = state.active[clock.active]
        state.active[group.place] = last
        state.groups[last].place = group.place


@inner
def wait(state: State, number: int) -> None:
    """Queue a thread for the GIL of its process; take a free GIL at once."""
    clock, thread = state.clock[0], state.threads[number]
    process = state.processes[thread.process]
    thread.since_ms = clock.now_ms
    thread.behind = NONE
    if process.head == NONE:
        process.head, process.asked_ms = number, clock.now_ms
        group_of(state, thread.process).waiting += 1
    else:
        state.threads[process.tail].behind = number
    process.tail = number
    if process.holder == NONE:
        place = clock.holding
        while place > 0 and state.holding[place - 1] > thread.process:
            state.holding[place] = state.holding[place - 1]
            place -= 1
        state.holding[place] = thread.process
        clock.holding += 1
        count_running(state, process.group, 1)
        _take(state, thread.process)


@inner
def release(state: State, number: int) -> None:
    """Release the GIL of a process, to the first waiter if there is one."""
    clock, process = state.clock[0], state.processes[number]
    process.last_holder = process.holder
    if process.head != NONE:
        _take(state, number)
        return
    process.holder = NONE
    place = 0
    while state.holding[place] != number:
        place += 1
    clock.holding -= 1
    while place < clock.holding:
        state.holding[place] = state.holding[place + 1]
        place += 1
    count_running(state, process.group, -1)


@inner
def _take(state: State, number: int) -> None:
    """Give the GIL to the thread that has waited longest."""
    clock, process = state.clock[0], state.processes[number]
    process.holder = process.head
    process.head = state.threads[process.holder].behind
    process.left_ms = state.threads[process.holder].remaining_ms
    if process.head == NONE:
        process.asked_ms = np.inf
        group_of(state, number).waiting -= 1
    else:
        process.asked_ms = state.threads[process.head].since_ms
    note(state, process.holder, WAIT_GIL)
    process.taken_ms = clock.now_ms
    if process.last_holder != NONE and process.last_holder != process.holder:
        process.switching_ms = clock.switch_cost_ms


@inner
def note(state: State, number: int, kind: int) -> None:
    """Record the span of a thread's last activity, and begin the next one."""
    clock, thread = state.clock[0], state.threads[number]
    core_ms = group_of(state, thread.process).core_ms
    elapsed_ms = clock.now_ms - thread.since_ms
    if len(state.spans) > 0 and kind != NONE and elapsed_ms > 0.0:
        wait_ms = 0.0
        if kind in (CPU, NATIVE):
            wait_ms = max(0.0, elapsed_ms - (core_ms - thread.since_core_ms))
        record(state, number, kind, thread.since_ms, clock.now_ms, wait_ms)
    thread.since_ms, thread.since_core_ms = clock.now_ms, core_ms


@inner
def record(
    state: State, number: int, kind: int, start_ms: float, end_ms: float, wait_core_ms: float
) -> None:
    """Write a span if there is space; count it in any case."""
    clock, thread = state.clock[0], state.threads[number]
    if clock.spans < len(state.spans):
        span = state.spans[clock.spans]
        span.process, span.kind, span.thread = thread.process, kind, NONE
        if number >= len(state.processes):
            span.thread = number - state.processes[thread.process].first
        span.start_ms, span.end_ms, span.wait_core_ms = start_ms, end_ms, wait_core_ms
    clock.spans += 1

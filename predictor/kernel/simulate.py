"""The event loop of the simulation."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import carray, from_dtype, types  # type: ignore[attr-defined]
from numpy.typing import NDArray

from chiron.predictor.compiling import inner
from chiron.predictor.kernel.admission import admit, count_arrivals
from chiron.predictor.kernel.cores import (
    compute_beside,
    count_running,
    drop_time,
    group_of,
    note,
    pace,
    release,
    wait,
)
from chiron.predictor.kernel.heap import pop_until
from chiron.predictor.kernel.nodes import come_due, end_call, end_sending
from chiron.predictor.kernel.state import NONE, State
from chiron.predictor.kernel.threads import end_helper, enqueue, next_period, unstarted
from chiron.predictor.records import (
    CLOCK,
    CPU,
    ENTRY,
    FUNCTION,
    GROUP,
    NODE,
    PERIOD,
    PROCESS,
    REPLICA,
    REQUEST,
    SLOT,
    SPAN,
    THREAD,
    WRAP,
    Record,
    Records,
)

#: Times closer than this are one instant; profiles have a resolution of microseconds.
INSTANT_MS = 1e-9
#: The relative precision of the clock (double): closer times are one instant too.
CLOCK_STEP = 1e-15


def _pointer(record: Record) -> Any:
    fields = [*((n, np.int64) for n in record.integers), *((n, np.float64) for n in record.times)]
    return types.CPointer(from_dtype(np.dtype(fields)))  # type: ignore[no-untyped-call]


_INTEGERS: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
_TIMES: Any = types.CPointer(types.float64)  # type: ignore[no-untyped-call]
#: The types of the result and the arguments of `simulate`.
SIGNATURE = types.int64(
    *map(_pointer, (PERIOD, FUNCTION, CLOCK, GROUP, WRAP, PROCESS, THREAD, NODE)),
    _INTEGERS,
    *map(_pointer, (SLOT, REPLICA, ENTRY, ENTRY)),
    *(_INTEGERS, _INTEGERS, _INTEGERS, _pointer(SPAN), _pointer(REQUEST), _TIMES),
)


def simulate(
    periods_at: Records,
    functions_at: Records,
    clock_at: Records,
    groups_at: Records,
    wraps_at: Records,
    processes_at: Records,
    threads_at: Records,
    nodes_at: Records,
    links_at: Records,
    slots_at: Records,
    replicas_at: Records,
    blocked_at: Records,
    computing_at: Records,
    due_at: Records,
    holding_at: Records,
    active_at: Records,
    spans_at: Records,
    requests_at: Records,
    factors_at: Records,
) -> int:
    """Simulate all requests, store their end times in the records, and return the number of spans.

    Each argument is the address of an array of the records with its name, except:

    links_at
        Numbers of tasks, nodes and processes, and the first and last node of each queue.
    blocked_at, computing_at, due_at
        Memory of heaps: for all threads, helpers and twice the nodes; for the sum of the groups'
        ``room``; and for the most items of one heap.
    holding_at, active_at
        Memory for one number for each process, and for each group.
    spans_at
        Memory for spans. Spans beyond it are counted and not stored.
    factors_at
        For each draw, the slowdown of computing; then for each task and draw, a ratio.
    """
    clock = carray(clock_at, 1)[0]
    state = State(
        carray(clock_at, 1),
        carray(periods_at, 1 << 60),
        carray(functions_at, 1 << 60),
        carray(groups_at, clock.groups),
        carray(wraps_at, clock.wraps),
        carray(processes_at, clock.processes),
        carray(threads_at, clock.threads),
        carray(nodes_at, clock.nodes),
        carray(links_at, 1 << 60),
        carray(slots_at, clock.slots),
        carray(replicas_at, clock.replicas),
        carray(blocked_at, 1 << 60),
        carray(computing_at, 1 << 60),
        carray(holding_at, clock.processes),
        carray(active_at, clock.groups),
        carray(spans_at, clock.most_spans),
        carray(requests_at, clock.requests),
        carray(factors_at, 1 << 60),
    )
    _run(state, carray(due_at, clock.most))
    return int(clock.spans)


@inner
def _run(state: State, due: NDArray[np.int64]) -> None:
    """Handle events until all requests are answered.

    A round handles the events of one instant in this order, by number within each kind:

    1. holders of a GIL, by process;
    2. computing without a GIL: helpers, starters, threads, then objects and calls;
    3. waits: starters, threads, nodes, then calls.

    An event that arises at the same instant is handled in this round if its kind is still to come,
    else in another round.
    """
    clock = state.clock[0]
    _fill(state)
    count_arrivals(state)
    admit(state)
    while clock.left > 0:
        _step(state)
        count_arrivals(state)
        # Backwards, as a group that becomes idle swaps places with the last one.
        for place in range(clock.active - 1, -1, -1):
            _end_computing(state, state.active[place], due)
        for index in range(pop_until(state.blocked, clock.now_ms + clock.instant_ms, due)):
            _wake(state, due[index])
        if clock.admits:
            admit(state)


@inner
def _fill(state: State) -> None:
    clock = state.clock[0]
    clock.left = clock.requests
    for number in range(len(state.groups)):
        state.computing[state.groups[number].heap].item = 0
    for number in range(len(state.processes)):
        process, starter = state.processes[number], state.threads[number]
        process.holder = process.last_holder = process.head = NONE
        process.queue = process.follower = process.gatherer = NONE
        process.asked_ms = np.inf
        main = state.wraps[process.wrap].main == number
        process.alive = process.idle = main
        starter.process, starter.doing = number, NONE
    for number in range(len(state.wraps)):
        state.wraps[number].forked = NONE
    for number in range(len(state.slots)):
        state.slots[number].request = NONE


@inner
def _step(state: State) -> None:
    """Advance to the next event, and update the holders of GILs."""
    clock, event_ms = state.clock[0], np.inf
    if clock.arrived < clock.requests:
        event_ms = state.requests[clock.arrived].arrival_ms
    if state.blocked[0].item > 0:
        event_ms = min(event_ms, state.blocked[1].key)
    for place in range(clock.active):
        event_ms = min(event_ms, pace(state, state.active[place]))
    for place in range(clock.holding):
        event_ms = min(event_ms, _next_of_holder(state, state.holding[place]))
    until_ms = max(event_ms, clock.now_ms)
    elapsed_ms = until_ms - clock.now_ms
    for place in range(clock.active):
        group = state.groups[state.active[place]]
        group.core_ms += elapsed_ms * group.share
        group.virtual_ms += elapsed_ms * group.rate
        group.used_ms += elapsed_ms * group.rate * group.running
    clock.now_ms = until_ms
    clock.instant_ms = max(INSTANT_MS, CLOCK_STEP * until_ms)
    place = 0
    while place < clock.holding:
        number = state.holding[place]
        _compute(state, number, elapsed_ms * group_of(state, number).rate)
        if place < clock.holding and state.holding[place] == number:
            place += 1


@inner
def _next_of_holder(state: State, number: int) -> float:
    """Return when the holder's period ends or the holder must drop the GIL."""
    process, now_ms = state.processes[number], state.clock[0].now_ms
    left_ms = process.left_ms if process.switching_ms == 0.0 else process.switching_ms
    ends_ms = now_ms + left_ms / group_of(state, number).rate
    return float(min(ends_ms, drop_time(state, number)))


@inner
def _compute(state: State, number: int, done_ms: float) -> None:
    """Let the holder compute; begin its next period, or hand the GIL over."""
    clock, process = state.clock[0], state.processes[number]
    if process.switching_ms > 0.0:
        left_ms = process.switching_ms - done_ms
        process.switching_ms = left_ms if left_ms > clock.instant_ms else 0.0
        process.taken_ms = clock.now_ms
    else:
        process.left_ms -= done_ms
    if process.switching_ms == 0.0 and process.left_ms <= clock.instant_ms:
        next_period(state, process.holder)
    elif drop_time(state, number) <= clock.now_ms + clock.instant_ms:
        note(state, process.holder, CPU)
        state.threads[process.holder].remaining_ms = process.left_ms
        wait(state, process.holder)
        release(state, number)


@inner
def _end_computing(state: State, number: int, due: NDArray[np.int64]) -> None:
    """End all computing without a GIL that is complete in a group by now."""
    clock, group = state.clock[0], state.groups[number]
    heap = state.computing[group.heap : group.heap + group.room]
    count = pop_until(heap, group.virtual_ms + clock.instant_ms, due)
    count_running(state, number, -count)
    for index in range(count):
        if due[index] < 0:
            end_helper(state, due[index])
        elif due[index] < len(state.threads):
            next_period(state, due[index])
        elif state.nodes[due[index] - len(state.threads)].sends_ms > 0.0:
            end_sending(state, due[index] - len(state.threads))
        else:
            end_call(state, due[index] - len(state.threads))


@inner
def _wake(state: State, item: int) -> None:
    """Continue a thread, a node or a call whose wait ends now."""
    clock, threads = state.clock[0], len(state.threads)
    if item >= threads + len(state.nodes):
        compute_beside(state, 0, clock.call_computing_ms, item - len(state.nodes))
    elif item >= threads:
        come_due(state, item - threads)
    elif item >= len(state.processes) and unstarted(state, item):
        enqueue(state, item)
    else:
        next_period(state, item)

"""The simulation: threads under the GIL, of processes on shared cores; compiled by numba.

A discrete-event simulation of one execution that generalises Chiron's Algorithm 1. Tasks end, and
nodes that awaited them fire and start others, in processes that are there or have to be started.
Of threads, a ``cpu`` period needs the GIL and a core, a ``native`` period a core only, a ``block``
period neither. Threads and processes that a function starts itself are helpers, which need a core
each. The runnable threads of all processes that share cores do so equally (processor sharing). A
waiter asks for the GIL after the switch interval; the holder drops it then, and before every period
that is not ``cpu``.

While GILs are handed on and all cores are wanted, some core idles now and then all the same: a
thread that is woken waits for the core that it was woken on, though another is free (Lozi et al.,
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

A process has a starter, the thread that starts those of its tasks, one after another. Where the
process is new, the starter is what is forked and computes first; then it waits for tasks, as that
of a wrap's main process does from the beginning.

Threads are numbers: the starter of every process has its process's, those of tasks come after them,
process by process, which is also their order at one instant. After these come nodes. What they do
next lies in heaps, and what shares cores ends by a clock that runs as fast as these let it (virtual
time). Helpers come before all of them: their items are negative, see `_start_helpers`.

This module is loaded only to be compiled: see `predictor.compiling`. It allocates nothing; its
caller, `predictor.simulator`, hands it all memory.

References
----------
Chiron (SC'23), §3.3, equations (2) to (4) and Algorithm 1; CPython's ``ceval_gil`` and
``threading.Thread.start``.
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
    FUNCTION,
    GROUP,
    HELPER,
    JOIN,
    NATIVE,
    NODE,
    PERIOD,
    PROCESS,
    SPAN,
    START,
    STARTED,
    THREAD,
    WAIT_GIL,
    WRAP,
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
#: Of a forked process: what forks it computes, or has done so.
_BEING_FORKED, _FORKED = 1, 2


class _State(NamedTuple):
    clock: Records
    periods: Records
    functions: Records
    groups: Records
    wraps: Records
    processes: Records
    threads: Records
    nodes: Records
    links: Records
    blocked: Records  # a heap by time: threads, nodes that will fire, calls that will compute
    computing: Records  # for every group a heap, by virtual time, of what needs no GIL
    holding: Records  # the processes whose GIL is held, in order
    active: Records  # the groups in which something computes
    spans: Records


def _pointer(record: Record) -> Any:
    fields = [*((n, np.int64) for n in record.integers), *((n, np.float64) for n in record.times)]
    return types.CPointer(from_dtype(np.dtype(fields)))  # type: ignore[no-untyped-call]


_INTEGERS: Any = types.CPointer(types.int64)  # type: ignore[no-untyped-call]
#: The types of what `simulate` gives and takes.
SIGNATURE = types.int64(
    *map(_pointer, (PERIOD, FUNCTION, CLOCK, GROUP, WRAP, PROCESS, THREAD, NODE)),
    _INTEGERS,
    *map(_pointer, (ENTRY, ENTRY)),
    *(_INTEGERS, _INTEGERS, _INTEGERS, _pointer(SPAN)),
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
    blocked_at: Records,
    computing_at: Records,
    due_at: Records,
    holding_at: Records,
    active_at: Records,
    spans_at: Records,
) -> int:
    """Write into tasks, processes and nodes when they have ended; how many spans there were.

    Each argument is the address of an array of the records of that name, or else of:

    links_at
        Numbers of tasks and nodes.
    blocked_at, computing_at
        Memory for heaps: for all threads, helpers, and twice the nodes; for what the groups' rooms
        are in sum.
    due_at
        Memory for as many items as the largest of those heaps may have.
    holding_at, active_at
        Memory for as many as there are processes and groups.
    spans_at
        Memory for spans. Those that there is no place for are counted all the same; where there is
        none at all nothing is recorded.
    """
    clock_array = carray(clock_at, 1)
    clock = clock_array[0]
    state = _State(
        clock_array,
        carray(periods_at, 1 << 60),
        carray(functions_at, 1 << 60),
        carray(groups_at, clock.groups),
        carray(wraps_at, clock.wraps),
        carray(processes_at, clock.processes),
        carray(threads_at, clock.threads),
        carray(nodes_at, clock.nodes),
        carray(links_at, 1 << 60),
        carray(blocked_at, 1 << 60),
        carray(computing_at, 1 << 60),
        carray(holding_at, clock.processes),
        carray(active_at, clock.groups),
        carray(spans_at, clock.most_spans),
    )
    due = carray(due_at, clock.most)
    _fill(state)
    while clock.left > 0:
        _step(state)
        # From the last on: a group that is done changes places with one that was looked at before.
        for place in range(clock.active - 1, -1, -1):
            _end_computing(state, state.active[place], due)
        for index in range(pop_until(state.blocked, clock.now_ms + clock.instant_ms, due)):
            _wake(state, due[index])
    return int(clock.spans)


@inner
def _fill(state: _State) -> None:
    clock = state.clock[0]
    clock.left = len(state.threads) - len(state.processes) + len(state.nodes)
    clock.called_ms = -np.inf
    for number in range(len(state.groups)):
        state.computing[state.groups[number].heap].item = 0
    for number in range(len(state.processes)):
        process, starter = state.processes[number], state.threads[number]
        process.holder = process.last_holder = process.head = _NONE
        process.queue = process.follower = process.gatherer = _NONE
        process.asked_ms = np.inf
        main = state.wraps[process.wrap].main == number
        process.alive = process.idle = main
        starter.process, starter.doing = number, _NONE
    for number in range(len(state.processes), len(state.threads)):
        thread = state.threads[number]
        function = state.functions[thread.function]
        thread.begin, thread.end = function.begin, function.end
        thread.at = thread.begin - _BEFORE - 1
        thread.doing = thread.node = _NONE
    for number in range(len(state.wraps)):
        state.wraps[number].forked = _NONE
    for number in range(len(state.nodes)):
        node = state.nodes[number]
        node.last = _NONE
        if node.missing == 0:
            push(state.blocked, node.delay_ms, len(state.threads) + number)


@inner
def _step(state: _State) -> None:
    """Go to the next event and settle what the holders do then."""
    clock, event_ms = state.clock[0], np.inf
    if state.blocked[0].item > 0:
        event_ms = state.blocked[1].key
    for place in range(clock.active):
        event_ms = min(event_ms, _pace(state, state.active[place]))
    for place in range(clock.holding):
        event_ms = min(event_ms, _next_of_holder(state, state.holding[place]))
    until_ms = max(event_ms, clock.now_ms)
    elapsed_ms = until_ms - clock.now_ms
    for place in range(clock.active):
        group = state.groups[state.active[place]]
        group.core_ms += elapsed_ms * group.share
        group.virtual_ms += elapsed_ms * group.rate
    clock.now_ms = until_ms
    clock.instant_ms = max(INSTANT_MS, CLOCK_STEP * until_ms)
    place = 0
    while place < clock.holding:
        number = state.holding[place]
        _compute(state, number, elapsed_ms * _group_of(state, number).rate)
        if place < clock.holding and state.holding[place] == number:
            place += 1


@inner
def _group_of(state: _State, process: int) -> Records:
    return state.groups[state.processes[process].group]


@inner
def _pace(state: _State, number: int) -> float:
    """How fast the time of a group passes from now on; when what needs no GIL next ends there."""
    clock, group = state.clock[0], state.groups[number]
    group.rate = group.share = min(1.0, group.cores / group.running)
    if group.waiting > 0 and group.running >= group.cores > 1:
        group.rate /= 1.0 + clock.contention_overhead
    heap = state.computing[group.heap : group.heap + group.room]
    if heap[0].item == 0:
        return np.inf
    return float(clock.now_ms + (heap[1].key - group.virtual_ms) / group.rate)


@inner
def _next_of_holder(state: _State, number: int) -> float:
    """When the period of the GIL's holder ends, or the GIL is next asked for."""
    process, now_ms = state.processes[number], state.clock[0].now_ms
    left_ms = process.left_ms if process.switching_ms == 0.0 else process.switching_ms
    ends_ms = now_ms + left_ms / _group_of(state, number).rate
    return float(min(ends_ms, _drop_time(state, number)))


@inner
def _drop_time(state: _State, number: int) -> float:
    """When the holder will have to drop the GIL: one interval after a waiter saw no switch."""
    process = state.processes[number]
    if process.switching_ms > 0.0:
        return np.inf
    return float(max(process.taken_ms, process.asked_ms) + state.clock[0].switch_interval_ms)


@inner
def _compute(state: _State, number: int, done_ms: float) -> None:
    """Let the holder compute; move it on if its period is over, or let it hand the GIL over."""
    clock, process = state.clock[0], state.processes[number]
    if process.switching_ms > 0.0:
        left_ms = process.switching_ms - done_ms
        process.switching_ms = left_ms if left_ms > clock.instant_ms else 0.0
        process.taken_ms = clock.now_ms
    else:
        process.left_ms -= done_ms
    if process.switching_ms == 0.0 and process.left_ms <= clock.instant_ms:
        _next_period(state, process.holder)
    elif _drop_time(state, number) <= clock.now_ms + clock.instant_ms:
        _note(state, process.holder, CPU)
        state.threads[process.holder].remaining_ms = process.left_ms
        _wait(state, process.holder)
        _release(state, number)


@inner
def _end_computing(state: _State, number: int, due: NDArray[np.int64]) -> None:
    """Move on what needs no GIL and has computed all it had to in a group by now."""
    clock, group = state.clock[0], state.groups[number]
    heap = state.computing[group.heap : group.heap + group.room]
    count = pop_until(heap, group.virtual_ms + clock.instant_ms, due)
    _count(state, number, -count)
    for index in range(count):
        if due[index] < 0:
            _end_helper(state, due[index])
        elif due[index] < len(state.threads):
            _next_period(state, due[index])
        elif clock.computed_calls:
            push(state.blocked, clock.now_ms, due[index])


@inner
def _wake(state: _State, item: int) -> None:
    """Go on with what has waited until now: a thread, a node, or a call that begins to compute."""
    clock, threads = state.clock[0], len(state.threads)
    if item >= threads + len(state.nodes):
        _compute_beside(state, 0, clock.call_computing_ms, item - len(state.nodes))
    elif item >= threads:
        _fire(state, item - threads)
    elif item >= len(state.processes) and _unstarted(state, item):
        _enqueue(state, item)
    else:
        _next_period(state, item)


@inner
def _unstarted(state: _State, number: int) -> bool:
    thread = state.threads[number]
    return bool(thread.at == thread.begin - _BEFORE - 1)


@inner
def _arrive(state: _State, number: int, what: int) -> None:
    """`what` has happened, which a node waited for: with the last, it will fire."""
    clock, node = state.clock[0], state.nodes[number]
    node.missing -= 1
    if node.missing == 0:
        node.last, node.complete_ms = what, clock.now_ms
        fires_ms = clock.now_ms + _gathering_ms(state, number) + node.delay_ms
        push(state.blocked, fires_ms, len(state.threads) + number)


@inner
def _gathering_ms(state: _State, number: int) -> float:
    """Equation (3): T_IPC for each further process whose results are still to be gathered.

    The first result of a process may take longer.
    """
    node, processes, first = state.nodes[number], 0, False
    for link in range(node.awaits, node.awaits_end):
        thread = state.threads[state.links[link]]
        process = state.processes[thread.process]
        if not thread.gathered and state.wraps[process.wrap].main != thread.process:
            thread.gathered = 1
            if process.gatherer != number:
                process.gatherer = number
                processes += 1
            if not process.gave:
                process.gave = 1
                first = True
    if processes == 0:
        return 0.0
    wrap = state.wraps[node.wrap]
    return float(processes * wrap.gather_ms + (wrap.first_gather_ms if first else 0.0))


@inner
def _fire(state: _State, number: int) -> None:
    """Call others, tell those that wait for this node, and start tasks."""
    clock, node = state.clock[0], state.nodes[number]
    clock.left -= 1
    node.fired_ms = clock.now_ms
    item, calls_end = len(state.threads) + number, node.then + node.calls
    for link in range(node.then, calls_end):
        _call(state, state.links[link], node.place + link - node.then, item)
    for link in range(calls_end, node.then_end):
        _arrive(state, state.links[link], item)
    if node.starts < node.starts_end:
        _start(state, number)


@inner
def _call(state: _State, number: int, place: int, caller: int) -> None:
    """Equation (2): calls leave T_INV after one another, and arrive T_RPC later.

    What a call computes it computes at its end, beside all else.
    """
    clock, node = state.clock[0], state.nodes[number]
    leaves_ms = clock.now_ms + place * clock.invoke_ms
    clock.called_ms = leaves_ms = max(leaves_ms, clock.called_ms + clock.invoke_ms)
    arrives_ms = leaves_ms + clock.call_ms
    node.last, node.complete_ms = caller, clock.now_ms
    item = len(state.threads) + number
    if clock.call_computing_ms > 0.0:
        computes_ms = max(clock.now_ms, arrives_ms - clock.call_computing_ms)
        push(state.blocked, computes_ms, item + len(state.nodes))
    if not clock.computed_calls:
        push(state.blocked, arrives_ms, item)


@inner
def _start(state: _State, number: int) -> None:
    """Start a node's tasks in their processes, and those that are not there yet one by one.

    Equation (4): the main process's tasks wait for that. Where the main process and others that it
    wakes keep each other from computing, all do.
    """
    clock, node = state.clock[0], state.nodes[number]
    wrap = state.wraps[node.wrap]
    new, before, main_leads_ms, new_leads_ms = 0, _NONE, 0.0, 0.0
    for link in range(node.starts, node.starts_end):
        thread = state.threads[state.links[link]]
        leads_ms = state.functions[thread.function].leading_ms
        if thread.process == wrap.main:
            main_leads_ms = max(main_leads_ms, leads_ms)
        elif not state.processes[thread.process].alive:
            new_leads_ms = max(new_leads_ms, leads_ms)
            new += thread.process != before
        before = thread.process
    wait_ms = min(wrap.core_wait_ms, main_leads_ms, new_leads_ms)
    turn_ms, main_ms, first_ms = max(clock.now_ms, wrap.free_ms), wait_ms, wrap.first_block_ms
    if new > 0:
        wrap.free_ms = turn_ms + first_ms + new * wrap.block_ms
        main_ms += wrap.main_ms if wrap.main_ms >= 0.0 else wrap.free_ms - clock.now_ms
    for link in range(node.starts, node.starts_end):
        item = state.links[link]
        thread = state.threads[item]
        thread.node, thread.triggered_ms = number, clock.now_ms
        if thread.process == wrap.main and main_ms > 0.0:
            push(state.blocked, clock.now_ms + main_ms, item)
            continue
        if not state.processes[thread.process].alive:
            _fork(state, thread.process, turn_ms + wait_ms, first_ms)
            turn_ms += first_ms + wrap.block_ms
            first_ms = 0.0
        _enqueue(state, item)


@inner
def _fork(state: _State, number: int, turn_ms: float, first_ms: float) -> None:
    """Bring a process to life whose turn comes at `turn_ms`, unless forking shares the cores."""
    process, starter = state.processes[number], state.threads[number]
    wrap = state.wraps[process.wrap]
    process.alive = 1
    process.computing_ms = wrap.computing_ms
    starter.doing, starter.since_ms = START, state.clock[0].now_ms
    if wrap.blocks_computing:
        process.forking_ms = first_ms + wrap.block_ms
        process.computing_ms -= process.forking_ms
        process.forked = _BEING_FORKED
        before, wrap.forked = wrap.forked, number
        if before != _NONE and state.processes[before].forked != _FORKED:
            state.processes[before].follower = number
            return
        turn_ms = state.clock[0].now_ms
    push(state.blocked, turn_ms + wrap.ready_ms, number)


@inner
def _enqueue(state: _State, number: int) -> None:
    """Have the starter of its process start the thread of a task, after those that wait for it.

    A process in which nothing is left to run hands its GIL over for nothing.
    """
    thread = state.threads[number]
    process = state.processes[thread.process]
    if process.unfinished == 0:
        process.last_holder = _NONE
    process.unfinished += 1
    thread.behind = _NONE
    if process.queue == _NONE:
        process.queue = number
    else:
        state.threads[process.queued].behind = number
    process.queued = number
    if process.idle:
        process.idle = 0
        if _next_start(state, thread.process, False):
            _wait(state, thread.process)


@inner
def _next_period(state: _State, number: int) -> None:
    thread = state.threads[number]
    process = state.processes[thread.process]
    _note(state, number, thread.doing)
    holds = process.holder == number
    if number < len(state.processes):
        wants = _next_start(state, number, holds)
    else:
        wants = _next_of_thread(state, number)
    if wants and not holds:
        _wait(state, number)
    elif holds and not wants:
        _release(state, thread.process)
    elif holds:
        process.left_ms = thread.remaining_ms


@inner
def _next_start(state: _State, number: int, started: bool) -> bool:
    """Go on being forked or starting threads; whether the starter wants the GIL for the next."""
    clock, process, starter = state.clock[0], state.processes[number], state.threads[number]
    if process.forking_ms > 0.0:
        _compute_beside(state, process.group, process.forking_ms, number)
        starter.doing, process.forking_ms = NATIVE, 0.0
        return False
    if process.forked == _BEING_FORKED:
        process.forked = _FORKED
        if process.follower != _NONE:
            push(state.blocked, clock.now_ms, process.follower)
    if process.computing_ms > 0.0:
        _compute_beside(state, process.group, process.computing_ms, number)
        starter.doing, process.computing_ms = NATIVE, 0.0
        return False
    if started:
        item = process.queue
        thread = state.threads[item]
        process.queue = thread.behind
        thread.at += 1
        thread.doing, thread.since_ms = START, clock.now_ms
        push(state.blocked, clock.now_ms + max(0.0, clock.thread_ready_ms), item)
        if clock.thread_ready_ms >= 0.0:
            process.parked = 1
            starter.doing = STARTED
            return False
    if process.queue == _NONE:
        process.idle = 1
        starter.doing = _NONE
        return False
    starter.doing, starter.remaining_ms = CPU, clock.thread_startup_ms
    return True


@inner
def _next_of_thread(state: _State, number: int) -> bool:
    """Begin the next period of a thread; whether it needs the GIL."""
    clock, thread = state.clock[0], state.threads[number]
    process = state.processes[thread.process]
    thread.at += 1
    if thread.at < thread.begin:
        thread.doing, thread.remaining_ms = CPU, 0.0
        return True
    if thread.at == thread.begin and process.parked:
        process.parked = 0
        _note(state, thread.process, STARTED)
        if _next_start(state, thread.process, False):
            _wait(state, thread.process)
    _start_helpers(state, number)
    if thread.at == thread.end:
        _finish(state, number)
        return False
    period = state.periods[thread.at]
    thread.doing = period.kind
    if period.kind == JOIN:
        return False
    if period.kind != CPU and _gets_gil_back(state, number, period.duration_ms):
        process.taken_ms = clock.now_ms
        thread.remaining_ms = period.duration_ms
        return True
    if period.kind == NATIVE:
        _compute_beside(state, process.group, period.duration_ms, number)
    elif period.kind == BLOCK:
        push(state.blocked, clock.now_ms + period.duration_ms, number)
    thread.remaining_ms = period.duration_ms
    return bool(period.kind == CPU)


@inner
def _finish(state: _State, number: int) -> None:
    """A task is done, and its result there for the nodes that await it."""
    clock, thread = state.clock[0], state.threads[number]
    process = state.processes[thread.process]
    clock.left -= 1
    process.unfinished -= 1
    process.end_ms = thread.end_ms = clock.now_ms
    for link in range(thread.links, thread.links_end):
        _arrive(state, state.links[link], number)


@inner
def _start_helpers(state: _State, number: int) -> None:
    """Start the helpers that come next; nobody waits for helpers that are done.

    Where a helper has its span, and whose it is, is in its item, which is less the lower the number
    of its thread.
    """
    clock, thread, places = state.clock[0], state.threads[number], len(state.spans) + 1
    group = state.processes[thread.process].group
    while thread.at < thread.end:
        period = state.periods[thread.at]
        if period.kind == HELPER:
            place = min(clock.spans, places - 1)
            core_ms = state.groups[group].core_ms
            _record(state, number, HELPER, clock.now_ms, _UNKNOWN_MS, core_ms)
            item = (number - len(state.threads)) * places + place
            _compute_beside(state, group, period.duration_ms, item)
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
        had_ms = _group_of(state, thread.process).core_ms - span.wait_core_ms
        span.wait_core_ms = max(0.0, span.end_ms - span.start_ms - had_ms)
    thread.helpers -= 1
    if thread.helpers == 0 and thread.at < thread.end and state.periods[thread.at].kind == JOIN:
        _next_period(state, number)


@inner
def _gets_gil_back(state: _State, number: int, duration_ms: float) -> bool:
    """Whether a thread lets its GIL go for too short a time for those who wait for it."""
    process = state.processes[state.threads[number].process]
    if duration_ms >= state.clock[0].short_release_ms:
        return False
    if process.holder != number or process.head == _NONE:
        return False
    group = state.groups[process.group]
    return bool(group.running >= group.cores)


@inner
def _compute_beside(state: _State, number: int, duration_ms: float, item: int) -> None:
    """Let something compute in a group for so long, without a GIL."""
    group = state.groups[number]
    heap = state.computing[group.heap : group.heap + group.room]
    push(heap, group.virtual_ms + duration_ms, item)
    _count(state, number, 1)


@inner
def _count(state: _State, number: int, more: int) -> None:
    """So many more want to compute in a group, which is active while any do."""
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
def _wait(state: _State, number: int) -> None:
    clock, thread = state.clock[0], state.threads[number]
    process = state.processes[thread.process]
    thread.since_ms = clock.now_ms
    thread.behind = _NONE
    if process.head == _NONE:
        process.head, process.asked_ms = number, clock.now_ms
        _group_of(state, thread.process).waiting += 1
    else:
        state.threads[process.tail].behind = number
    process.tail = number
    if process.holder == _NONE:
        place = clock.holding
        while place > 0 and state.holding[place - 1] > thread.process:
            state.holding[place] = state.holding[place - 1]
            place -= 1
        state.holding[place] = thread.process
        clock.holding += 1
        _count(state, process.group, 1)
        _take(state, thread.process)


@inner
def _release(state: _State, number: int) -> None:
    clock, process = state.clock[0], state.processes[number]
    process.last_holder = process.holder
    if process.head != _NONE:
        _take(state, number)
        return
    process.holder = _NONE
    place = 0
    while state.holding[place] != number:
        place += 1
    clock.holding -= 1
    while place < clock.holding:
        state.holding[place] = state.holding[place + 1]
        place += 1
    _count(state, process.group, -1)


@inner
def _take(state: _State, number: int) -> None:
    """Give the GIL to the thread that has waited longest."""
    clock, process = state.clock[0], state.processes[number]
    process.holder = process.head
    process.head = state.threads[process.holder].behind
    process.left_ms = state.threads[process.holder].remaining_ms
    if process.head == _NONE:
        process.asked_ms = np.inf
        _group_of(state, number).waiting -= 1
    else:
        process.asked_ms = state.threads[process.head].since_ms
    _note(state, process.holder, WAIT_GIL)
    process.taken_ms = clock.now_ms
    if process.last_holder != _NONE and process.last_holder != process.holder:
        process.switching_ms = clock.switch_cost_ms


@inner
def _note(state: _State, number: int, kind: int) -> None:
    """Record what a thread has done since it began to, and that it begins something else."""
    clock, thread = state.clock[0], state.threads[number]
    core_ms = _group_of(state, thread.process).core_ms
    elapsed_ms = clock.now_ms - thread.since_ms
    if len(state.spans) > 0 and kind != _NONE and elapsed_ms > 0.0:
        wait_ms = 0.0
        if kind in (CPU, NATIVE):
            wait_ms = max(0.0, elapsed_ms - (core_ms - thread.since_core_ms))
        _record(state, number, kind, thread.since_ms, clock.now_ms, wait_ms)
    thread.since_ms, thread.since_core_ms = clock.now_ms, core_ms


@inner
def _record(
    state: _State, number: int, kind: int, start_ms: float, end_ms: float, wait_core_ms: float
) -> None:
    """Write a span where there is a place for it."""
    clock, thread = state.clock[0], state.threads[number]
    if clock.spans < len(state.spans):
        span = state.spans[clock.spans]
        span.process, span.kind, span.thread = thread.process, kind, _NONE
        if number >= len(state.processes):
            span.thread = number - state.processes[thread.process].first
        span.start_ms, span.end_ms, span.wait_core_ms = start_ms, end_ms, wait_core_ms
    clock.spans += 1

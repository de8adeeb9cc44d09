"""Nodes fire: they send objects, call other wraps, start processes and their tasks."""

from __future__ import annotations

from chiron.predictor.compiling import inner
from chiron.predictor.kernel.admission import count_done, count_reply
from chiron.predictor.kernel.cores import compute_beside, group_of
from chiron.predictor.kernel.heap import push
from chiron.predictor.kernel.results import arrive
from chiron.predictor.kernel.state import BEING_FORKED, FORKED, NONE, SENT, State
from chiron.predictor.kernel.threads import enqueue, start_awaited
from chiron.predictor.records import START


@inner
def come_due(state: State, number: int) -> None:
    """Fire a node, or first send its objects, queued behind earlier ones."""
    node = state.nodes[number]
    if node.sending == SENT or (node.sends_ms == 0.0 and node.queue == NONE):
        _fire(state, number)
        return
    if node.queue == NONE:
        _send(state, number)
        return
    node.behind = NONE
    last = state.links[node.queue + 1]
    state.links[node.queue + 1] = number
    if state.links[node.queue] != NONE:
        state.nodes[last].behind = number
        return
    state.links[node.queue] = number
    _send_first(state, node.queue)


@inner
def end_sending(state: State, number: int) -> None:
    """Count the end of sending in one of two wraps; after both, the node fires."""
    node = state.nodes[number]
    node.sending -= 1
    if node.sending == 0:
        _sent(state, number)
        if node.queue != NONE:
            _send_first(state, node.queue)


@inner
def _send_first(state: State, queue: int) -> None:
    """Send the first objects of a queue; empty objects arrive at once."""
    while state.links[queue] != NONE:
        number = state.links[queue]
        if state.nodes[number].sends_ms > 0.0:
            _send(state, number)
            return
        _sent(state, number)


@inner
def _send(state: State, number: int) -> None:
    node, item = state.nodes[number], len(state.threads) + number
    node.sending = 1
    compute_beside(state, state.wraps[node.wrap].group, node.sends_ms, item)
    if node.to != node.wrap:
        node.sending = 2
        compute_beside(state, state.wraps[node.to].group, node.sends_ms, item)


@inner
def _sent(state: State, number: int) -> None:
    node = state.nodes[number]
    node.sending = SENT
    push(state.blocked, state.clock[0].now_ms, len(state.threads) + number)
    if node.queue != NONE:
        state.links[node.queue] = node.behind


@inner
def _fire(state: State, number: int) -> None:
    """Fire a node: call wraps, notify the nodes that await it, and start tasks."""
    clock, node = state.clock[0], state.nodes[number]
    node.fired_ms = clock.now_ms
    count_reply(state, number)
    count_done(state, node.slot)
    item, calls_end = len(state.threads) + number, node.then + node.calls
    for link in range(node.then, calls_end):
        _call(state, state.links[link], node.place + link - node.then, item)
    for link in range(calls_end, node.then_end):
        arrive(state, state.links[link], item)
    if node.starts < node.starts_end:
        _start(state, number)


@inner
def _call(state: State, number: int, place: int, caller: int) -> None:
    """Call a wrap, by equation (2): calls leave T_INV apart and arrive T_RPC later.

    The computing of a call is at its end and competes for the cores.
    """
    clock, node = state.clock[0], state.nodes[number]
    leaves_ms = clock.now_ms + place * clock.invoke_ms
    slot = state.slots[node.slot]
    slot.called_ms = leaves_ms = max(leaves_ms, slot.called_ms + clock.invoke_ms)
    arrives_ms = leaves_ms + clock.call_ms
    node.last, node.complete_ms = caller, clock.now_ms
    item = len(state.threads) + number
    if clock.call_computing_ms > 0.0:
        computes_ms = max(clock.now_ms, arrives_ms - clock.call_computing_ms)
        slot.left += 1
        push(state.blocked, computes_ms, item + len(state.nodes))
    if not clock.computed_calls:
        push(state.blocked, arrives_ms, item)


@inner
def end_call(state: State, number: int) -> None:
    """End the computing of a call."""
    clock = state.clock[0]
    count_done(state, state.nodes[number].slot)
    if clock.computed_calls:
        push(state.blocked, clock.now_ms, len(state.threads) + number)


@inner
def _start(state: State, number: int) -> None:
    """Start a node's tasks in their processes; fork missing processes one by one.

    Equation (4): the main process's tasks wait for the forks. The main process and the processes
    that it wakes can delay each other (`core_wait_ms`). With more processes than cores, sharing the
    cores already covers that delay.
    """
    clock, node = state.clock[0], state.nodes[number]
    wrap = state.wraps[node.wrap]
    new, before, main_leads_ms, new_leads_ms = 0, NONE, 0.0, 0.0
    for link in range(node.starts, node.starts_end):
        thread = state.threads[state.links[link]]
        leads_ms = state.functions[thread.function].leading_ms
        if leads_ms < 0.0:
            continue
        if thread.process == wrap.main:
            main_leads_ms = max(main_leads_ms, leads_ms)
        elif not state.processes[thread.process].alive:
            new_leads_ms = max(new_leads_ms, leads_ms)
            new += thread.process != before
        before = thread.process
    wait_ms = 0.0
    if 1 + new <= group_of(state, wrap.main).cores:
        wait_ms = min(wrap.core_wait_ms, main_leads_ms, new_leads_ms)
    turn_ms, main_ms, first_ms = max(clock.now_ms, wrap.free_ms), wait_ms, wrap.first_block_ms
    if new > 0:
        wrap.free_ms = turn_ms + first_ms + new * wrap.block_ms
        main_ms += wrap.main_ms if wrap.main_ms >= 0.0 else wrap.free_ms - clock.now_ms
    for link in range(node.starts, node.starts_end):
        item = state.links[link]
        thread = state.threads[item]
        thread.node, thread.triggered_ms = number, clock.now_ms
        leads_ms = state.functions[thread.function].leading_ms
        if leads_ms < 0.0:
            if leads_ms < -1.0:
                start_awaited(state, item)
            continue
        if thread.process == wrap.main and main_ms > 0.0:
            push(state.blocked, clock.now_ms + main_ms, item)
            continue
        if not state.processes[thread.process].alive:
            _fork(state, thread.process, turn_ms + wait_ms, first_ms)
            turn_ms += first_ms + wrap.block_ms
            first_ms = 0.0
        enqueue(state, item)


@inner
def _fork(state: State, number: int, turn_ms: float, first_ms: float) -> None:
    """Fork a process at `turn_ms`; if forking needs cores, after the process before it."""
    process, starter = state.processes[number], state.threads[number]
    wrap = state.wraps[process.wrap]
    process.alive = 1
    process.computing_ms = wrap.computing_ms
    starter.doing, starter.since_ms = START, state.clock[0].now_ms
    if wrap.blocks_computing:
        process.forking_ms = first_ms + wrap.block_ms
        process.computing_ms -= process.forking_ms
        before, wrap.forked = wrap.forked, number
        waits = before != NONE and state.processes[before].forked != FORKED
        process.forked = BEING_FORKED
        if waits:
            state.processes[before].follower = number
            return
        turn_ms = state.clock[0].now_ms
    push(state.blocked, turn_ms + wrap.ready_ms, number)

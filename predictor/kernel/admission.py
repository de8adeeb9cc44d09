"""Requests arrive, wait for a slot of their replica, and free the slot at their end."""

from __future__ import annotations

import numpy as np

from chiron.predictor.compiling import inner
from chiron.predictor.kernel.heap import push
from chiron.predictor.kernel.state import BEFORE, NONE, State


@inner
def count_arrivals(state: State) -> None:
    """Count the requests whose arrival time has come."""
    clock = state.clock[0]
    while clock.arrived < clock.requests:
        if state.requests[clock.arrived].arrival_ms > clock.now_ms + clock.instant_ms:
            return
        clock.arrived += 1
        clock.admits = 1


@inner
def admit(state: State) -> None:
    """Begin waiting requests at each replica with free slots, in order of arrival."""
    clock = state.clock[0]
    clock.admits = 0
    for number in range(clock.replicas):
        replica = state.replicas[number]
        following = number + clock.replicas * replica.admitted
        while following < clock.arrived and replica.inflight < clock.limit:
            place = (number * clock.programs + state.requests[following].program) * clock.limit
            while state.slots[place].request != NONE:
                place += 1
            _begin(state, place, following)
            replica.inflight += 1
            replica.admitted += 1
            following += clock.replicas


@inner
def count_done(state: State, number: int) -> None:
    """Count the end of a task, node or call of a slot; the last one frees the slot."""
    clock, slot = state.clock[0], state.slots[number]
    slot.left -= 1
    if slot.left == 0:
        slot.request = NONE
        state.replicas[number // (clock.programs * clock.limit)].inflight -= 1
        clock.left -= 1
        clock.admits = 1


@inner
def count_reply(state: State, number: int) -> None:
    """If the fired node is the reply, let the client send its next request."""
    clock = state.clock[0]
    slot = state.slots[state.nodes[number].slot]
    if number == slot.reply:
        state.requests[slot.request].replied_ms = clock.now_ms
        if clock.known < clock.requests:
            state.requests[clock.known].arrival_ms = clock.now_ms
            clock.known += 1


@inner
def _begin(state: State, number: int, following: int) -> None:
    """Begin a request in a free slot, whose records are reset."""
    clock, slot, request = state.clock[0], state.slots[number], state.requests[following]
    slot.request, slot.called_ms = following, -np.inf
    slot.left = slot.threads_end - slot.threads + slot.nodes_end - slot.nodes
    for place in range(slot.processes, slot.processes_end):
        process = state.processes[state.links[place]]
        process.last_holder = process.begun = process.follower = process.gatherer = NONE
        process.alive = process.idle = process.gave = process.parked = 0
    slower = state.factors[request.draw]
    factor = slot.factors * clock.draws + request.draw
    for place in range(slot.threads, slot.threads_end):
        thread = state.threads[place]
        function = state.functions[thread.function]
        thread.begin, thread.end = function.begin, function.end
        thread.at = thread.begin - BEFORE - 1
        thread.doing = thread.node = thread.behind = NONE
        thread.helpers = thread.gathered = 0
        thread.ratio, thread.slower = state.factors[factor], slower
        factor += clock.draws
    for place in range(slot.nodes, slot.nodes_end):
        node = state.nodes[place]
        node.last, node.sending, node.missing = NONE, 0, node.needs
        if node.needs == 0:
            push(state.blocked, clock.now_ms + node.delay_ms, len(state.threads) + place)

"""Results: a node fires after the last result that it awaits."""

from __future__ import annotations

from chiron.predictor.compiling import inner
from chiron.predictor.kernel.heap import push
from chiron.predictor.kernel.state import State


@inner
def arrive(state: State, number: int, what: int) -> None:
    """Count the event `what` that a node awaits; schedule the node after the last."""
    clock, node = state.clock[0], state.nodes[number]
    node.missing -= 1
    if node.missing == 0:
        node.last, node.complete_ms = what, clock.now_ms
        fires_ms = clock.now_ms + _gathering_ms(state, number) + node.delay_ms
        push(state.blocked, fires_ms, len(state.threads) + number)


@inner
def _gathering_ms(state: State, number: int) -> float:
    """Return the time to gather results, by equation (3): T_IPC for each worker process.

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

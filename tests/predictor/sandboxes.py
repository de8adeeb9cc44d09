"""A wrap in virtual time: its processes, and what its engine knows of them."""

from __future__ import annotations

from collections.abc import Iterable

from oracle import Cores, Gil, Simulation

from chiron.predictor.mechanisms import mechanism_of
from chiron.workflow.plan import Wrap
from chiron.workflow.platform import Platform


class Sandbox:
    """A wrap with its processes, and what its engine knows of them."""

    def __init__(self, wrap: Wrap, cores: Cores, simulation: Simulation, place: Platform) -> None:
        self.simulation, self.cores = simulation, cores
        self.costs = mechanism_of(wrap.mechanism).costs(place)
        self.lasting = mechanism_of(wrap.mechanism).lasting
        self.gils = [simulation.add_process(cores) for _ in wrap.processes]
        for gil in self.gils[1:]:
            gil.starter.position = -1  # it is not there yet
        self.alive = {0}
        self.gathered = set[str]()
        self.known = set[int]()  # the processes that have given a result
        self.free_ms = 0.0
        self.forked_last: Gil | None = None

    def gathering_ms(self, results: Iterable[tuple[str, int]]) -> float:
        """Equation (3), for results of tasks that ended in some processes."""
        new = {(t, p) for t, p in results if p and t not in self.gathered}
        self.gathered |= {task for task, _ in new}
        processes = {process for _, process in new}
        first = bool(processes - self.known)
        self.known |= processes
        return len(processes) * self.costs.gather_ms + first * self.costs.first_gather_ms

    def delays_ms(self, leading_ms: dict[int, float]) -> dict[int, float]:
        """Equation (4): start processes that are to run what computes so long at first.

        How long each has to wait that is there when it begins to wait.
        """
        costs, now = self.costs, self.simulation.now
        new = [process for process in sorted(leading_ms) if process not in self.alive]
        if not new:
            return dict.fromkeys(leading_ms, 0.0)
        wait_ms = 0.0
        if 0 in leading_ms and 1 + len(new) <= self.cores.count:
            wait_ms = min(costs.core_wait_ms, leading_ms[0], max(leading_ms[p] for p in new))
        turn_ms = max(now, self.free_ms)
        for number, process in enumerate(new):
            block_ms = costs.block_ms + (costs.first_block_ms if number == 0 else 0.0)
            self._fork(self.gils[process], turn_ms + wait_ms, block_ms)
            turn_ms += block_ms
        self.free_ms = turn_ms
        self.alive.update(new)
        waits = dict.fromkeys(leading_ms, 0.0)
        if 0 in waits:
            waits[0] = wait_ms + (costs.main_ms if costs.main_ms >= 0 else turn_ms - now)
        return waits

    def _fork(self, gil: Gil, turn_ms: float, block_ms: float) -> None:
        costs, before = self.costs, self.forked_last
        if not costs.blocks_computing:
            self.simulation.fork(gil, turn_ms + costs.ready_ms, 0.0, costs.computing_ms)
            return
        alive_ms: float | None = self.simulation.now + costs.ready_ms
        if before is not None and before.being_forked:
            before.follower, alive_ms = gil, None
        self.simulation.fork(gil, alive_ms, block_ms, costs.computing_ms - block_ms)
        self.forked_last = gil

"""Greedy partitions: each function in turn goes to the process that would end first with it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from heapq import heappop, heappush

from chiron.scheduler.kernighan_lin import Functions
from chiron.scheduler.problem import Kind, Problem


def fill(
    problem: Problem, order: Sequence[int], offsets_ms: Sequence[float]
) -> tuple[float, tuple[Functions, ...]]:
    """Assign the functions in that order to processes that start at `offsets_ms`, none left empty.

    Returns the end of the last process if threads only computed, and the partition. No conflicting
    functions share a process, if there are at least as many processes as `separated` returns.
    """
    filling = _Filling(problem, order, offsets_ms)
    for place, n in enumerate(order):
        filling.put(n, scarce=filling.empty == len(order) - place)
    return filling.latest_ms, tuple(tuple(sorted(content)) for content in filling.contents)


class _Filling:
    """Processes while they are filled."""

    def __init__(self, problem: Problem, order: Sequence[int], offsets_ms: Sequence[float]) -> None:
        self.contents: list[list[int]] = [[] for _ in offsets_ms]
        self.empty, self.latest_ms = len(offsets_ms), 0.0
        self._problem, self._offsets_ms = problem, offsets_ms
        self._busy_ms = list(offsets_ms)
        self._by_offset = sorted(range(len(offsets_ms)), key=lambda s: (offsets_ms[s], s))
        self._by_work = [(offsets_ms[s], s) for s in self._by_offset]  # a heap with stale entries
        self._colours = _Colours(problem, order, len(offsets_ms)) if problem.apart else None

    def put(self, n: int, *, scarce: bool) -> None:
        """Put `n` where it ends first; if functions are `scarce`, into an empty process."""
        kind, busy_ms, waiting = self._problem.kinds[n], self._busy_ms, self._by_work
        while waiting[0][0] < busy_ms[waiting[0][1]]:
            heappop(waiting)
        end_ms, slot = waiting[0][0] + kind.core_ms, waiting[0][1]
        if self._colours or scarce:
            end_ms, slot = self._first_free(n, scarce)
        elif end_ms < self._offsets_ms[slot] + kind.latency_ms:
            end_ms, slot = self._first_end(kind)
        if not self.contents[slot]:
            self.empty -= 1
            if self._colours:
                self._colours.open(slot, n)
        self.contents[slot].append(n)
        busy_ms[slot] += kind.core_ms
        heappush(waiting, (busy_ms[slot], slot))
        self.latest_ms = max(self.latest_ms, end_ms)

    def _first_end(self, kind: Kind) -> tuple[float, int]:
        """Return the earliest end of the function, and its slot: the hot spot of a search."""
        busy_ms, offsets_ms = self._busy_ms, self._offsets_ms
        core_ms, latency_ms = kind.core_ms, kind.latency_ms
        first_ms, first = math.inf, 0
        for slot in self._by_offset:
            end_ms = offsets_ms[slot] + latency_ms
            if end_ms >= first_ms:
                break
            computed_ms = busy_ms[slot] + core_ms
            if computed_ms > end_ms:
                end_ms = computed_ms
            if end_ms < first_ms:
                first_ms, first = end_ms, slot
        return first_ms, first

    def _first_free(self, n: int, scarce: bool) -> tuple[float, int]:
        """Return the earliest end of `n`, and its slot; infinite if no slot is allowed."""
        kind, best = self._problem.kinds[n], (math.inf, 0)
        for slot in self._by_offset:
            alone_ms = self._offsets_ms[slot] + kind.latency_ms
            if alone_ms >= best[0]:
                break
            end_ms = max(self._busy_ms[slot] + kind.core_ms, alone_ms)
            if end_ms < best[0] and self._free(slot, n, scarce):
                best = end_ms, slot
        return best

    def _free(self, slot: int, n: int, scarce: bool) -> bool:
        content = self.contents[slot]
        if scarce or self._colours is None:
            return not (scarce and content)
        if not content:
            return self._colours.may_open(n, self.empty)
        return self._problem.gets_on(n, content) and self._colours.may_join(slot, n)


class _Colours:
    """The colour of every process in use, so that each function finds a process of its colour.

    A colour is a set of functions that may share a process. A process of a colour also accepts
    other functions that conflict with no function of the colour. Empty processes are reserved for
    colours without a process.
    """

    def __init__(self, problem: Problem, order: Sequence[int], count: int) -> None:
        self._problem = problem
        self._functions = problem.separated(tuple(sorted(order)))
        self._unopened = dict.fromkeys(range(len(self._functions)))
        self._of_slot = [-1] * count
        self._may_join: dict[tuple[int, int], bool] = {}

    def may_open(self, n: int, empty: int) -> bool:
        """Return whether `n` may start one of the `empty` processes."""
        return empty > len(self._unopened) or self._own(n) in self._unopened

    def open(self, slot: int, n: int) -> None:
        """Start a process with `n`, and give it the colour of `n`."""
        colour = self._own(n)
        self._unopened.pop(colour, None)
        self._of_slot[slot] = colour

    def may_join(self, slot: int, n: int) -> bool:
        """Return whether a process that `n` joins stays open for all functions of its colour."""
        key = self._of_slot[slot], n
        if key not in self._may_join:
            colour = self._functions[key[0]]
            self._may_join[key] = n in colour or self._problem.gets_on(n, colour)
        return self._may_join[key]

    def _own(self, n: int) -> int:
        """Return a colour of `n`, which has several if its tasks conflict: unused if possible."""
        own = [c for c, functions in enumerate(self._functions) if n in functions]
        return next((c for c in own if c in self._unopened), own[0])

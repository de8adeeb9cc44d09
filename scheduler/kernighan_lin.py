"""Kernighan-Lin between two processes, with predicted latency as the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from heapq import nsmallest
from itertools import product
from typing import TypeVar

#: The functions, by number, of one process: a multiset, sorted.
Functions = tuple[int, ...]
#: The functions that move from the first process to the second and back; None: no function.
Exchange = tuple[int | None, int | None]
#: Maps the content of the two processes to a function that estimates the cost after an exchange.
Estimate = Callable[[Functions, Functions], Callable[[Exchange], float]]
#: A latency, or a tuple that starts with a latency and breaks ties.
Cost = TypeVar("Cost", float, tuple[float, ...])

#: How many exchanges are tried at each step, the most promising by estimate. Up to seven functions
#: in all there are no more; beyond, the estimate nearly always includes the best exchange.
TRIED = 8


def kernighan_lin(
    a: Functions,
    b: Functions,
    cost: Callable[[Functions, Functions], Cost],
    estimate: Estimate | None = None,
) -> Iterator[tuple[Cost, Functions, Functions]]:
    """Move or swap functions between two processes, the best first, each function at most once.

    Yields the cost and the two processes after each step; the caller keeps the best prefix, which
    may be empty. A step that raises the cost is made too: a later step may outweigh it. No process
    is emptied.

    Args:
        a, b: the functions of the two processes. Equal functions count as one candidate.
        cost: the cost of the given content of the two processes.
        estimate: a cheaper estimate of `cost`; without it, every exchange is tried.

    Source: Chiron (SC'23), Algorithm 2, lines 18-25, which only swaps; Kernighan and Lin (1970).

    >>> def imbalance(a, b):
    ...     return abs(sum(a) - sum(b))
    >>> next(kernighan_lin((5, 5), (1, 1), imbalance))
    (0, (1, 5), (1, 5))
    """
    free_a, free_b = list(a), list(b)
    while True:
        exchanges = _exchanges(a, b, free_a, free_b)
        if estimate is not None and len(exchanges) > TRIED:
            exchanges = nsmallest(TRIED, exchanges, key=estimate(a, b))
        if not exchanges:
            return
        contents = [(exchanged(a, x, y), exchanged(b, y, x)) for x, y in exchanges]
        costs = [cost(*content) for content in contents]
        best = min(range(len(costs)), key=lambda i: (costs[i], contents[i]))
        (x, y), (a, b) = exchanges[best], contents[best]
        if x is not None:
            free_a.remove(x)
        if y is not None:
            free_b.remove(y)
        yield costs[best], a, b


def exchanged(functions: Functions, out: int | None, into: int | None) -> Functions:
    """Return `functions` without one `out` and with one `into`, unless they are None."""
    changed = list(functions)
    if out is not None:
        changed.remove(out)
    if into is not None:
        changed.append(into)
    return tuple(sorted(changed))


def _exchanges(a: Functions, b: Functions, free_a: list[int], free_b: list[int]) -> list[Exchange]:
    """Return swaps of free functions, and moves that leave a function behind."""
    exchanges: list[Exchange] = list(product(sorted(set(free_a)), sorted(set(free_b))))
    if len(a) > 1:
        exchanges += [(x, None) for x in sorted(set(free_a))]
    if len(b) > 1:
        exchanges += [(None, y) for y in sorted(set(free_b))]
    return exchanges

"""Kernighan-Lin between two processes, with predicted latency as the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator

#: The functions, by number, of one process: a multiset, sorted.
Functions = tuple[int, ...]


def kernighan_lin(
    a: Functions, b: Functions, cost: Callable[[Functions, Functions], float]
) -> Iterator[tuple[float, Functions, Functions]]:
    """Swap functions between two processes, the best pair first, each at most once.

    Yields the cost and the two processes after each swap; the caller keeps the best prefix,
    which may be no swap at all. A swap that makes things worse is made too: one after it may
    more than pay for it.

    Parameters
    ----------
    a, b
        The functions of the two processes. Equal functions count as one candidate.
    cost
        Latency in milliseconds with the given content of the two processes.

    References
    ----------
    Chiron (SC'23), Algorithm 2, lines 18-25; Kernighan and Lin (1970).

    Examples
    --------
    >>> def imbalance(a, b):
    ...     return abs(sum(a) - sum(b))
    >>> next(kernighan_lin((5, 5), (1, 1), imbalance))
    (0, (1, 5), (1, 5))
    """
    free_a, free_b = list(a), list(b)
    while free_a and free_b:
        candidates = (
            (cost(exchanged(a, x, y), exchanged(b, y, x)), x, y)
            for x in sorted(set(free_a))
            for y in sorted(set(free_b))
        )
        best, x, y = min(candidates)
        a, b = exchanged(a, x, y), exchanged(b, y, x)
        free_a.remove(x)
        free_b.remove(y)
        yield best, a, b


def exchanged(functions: Functions, out: int, into: int) -> Functions:
    """`functions` with one `out` replaced by `into`."""
    at = functions.index(out)
    return tuple(sorted((*functions[:at], into, *functions[at + 1 :])))

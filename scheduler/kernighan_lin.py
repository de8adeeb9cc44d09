"""Kernighan-Lin between two processes, with predicted latency as the cost."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

#: A function, or whatever stands for it and can be sorted.
F = TypeVar("F", int, str)


def kernighan_lin(
    a: tuple[F, ...],
    b: tuple[F, ...],
    cost: Callable[[tuple[F, ...], tuple[F, ...]], float],
) -> Iterator[tuple[float, tuple[F, ...], tuple[F, ...]]]:
    """Swap functions between two processes, the best pair first, each at most once.

    Yields the cost and the two processes after each swap; the caller keeps the best prefix,
    which may be no swap at all. A swap that makes things worse is made too: one after it may
    more than pay for it.

    Parameters
    ----------
    a, b
        The functions of the two processes, multisets in sorted order. Equal functions count as
        one candidate.
    cost
        Latency in milliseconds with the given content of the two processes.

    References
    ----------
    Chiron (SC'23), Algorithm 2, lines 18-25; Kernighan and Lin (1970).

    Examples
    --------
    >>> def imbalance(a, b):
    ...     return abs(a.count("slow") - b.count("slow"))
    >>> next(kernighan_lin(("slow", "slow"), ("fast", "fast"), imbalance))
    (0, ('fast', 'slow'), ('fast', 'slow'))
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


def exchanged(functions: tuple[F, ...], out: F, into: F) -> tuple[F, ...]:
    """`functions` with one `out` replaced by `into`."""
    at = functions.index(out)
    return tuple(sorted((*functions[:at], into, *functions[at + 1 :])))

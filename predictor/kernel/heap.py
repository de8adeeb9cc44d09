"""A compiled priority queue of numbers by time; heapq's lists are slower in compiled code.

A heap is an array of `chiron.predictor.records.ENTRY` with the smallest key at index 1; the item of
entry 0 is its length.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from chiron.predictor.compiling import inner
from chiron.predictor.records import Records


@inner
def push(heap: Records, key: float, item: int) -> None:
    """Add `item`; the array must have space."""
    heap[0].item += 1
    place = heap[0].item
    while place > 1 and heap[place // 2].key > key:
        heap[place] = heap[place // 2]
        place //= 2
    heap[place].key = key
    heap[place].item = item


@inner
def pop(heap: Records) -> int:
    """Remove and return the item with the smallest key; the heap must not be empty."""
    first = heap[1].item
    size = heap[0].item
    heap[0].item -= 1
    key, item = heap[size].key, heap[size].item
    place, child = 1, 2
    while child < size:
        if child + 1 < size and heap[child + 1].key < heap[child].key:
            child += 1
        if key <= heap[child].key:
            break
        heap[place] = heap[child]
        place, child = child, 2 * child
    heap[place].key = key
    heap[place].item = item
    return int(first)


@inner
def pop_until(heap: Records, limit: float, due: NDArray[np.int64]) -> int:
    """Move all items with keys up to `limit` into `due`, sorted; return their number."""
    count = 0
    while heap[0].item > 0 and heap[1].key <= limit:
        item = pop(heap)
        place = count
        while place > 0 and due[place - 1] > item:
            due[place] = due[place - 1]
            place -= 1
        due[place] = item
        count += 1
    return count

"""The tasks of Ray and Dask; each worker imports them once, before the measurement."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chiron.evaluation.runtime.handlers.handing import TEXTS

_BYTES = {int(size): text.encode() for size, text in TEXTS.items()}
_ARRAYS = {size: np.frombuffer(data, np.uint8) for size, data in _BYTES.items()}


class Tasks:
    """Functions of tasks, and methods of an actor."""

    @staticmethod
    def noop(*given: Any) -> Any:
        """Return the first input."""
        return given[0]

    @staticmethod
    def give(size: int) -> bytes:
        """Return `size` bytes."""
        return _BYTES[size]

    @staticmethod
    def array(size: int) -> NDArray[np.uint8]:
        """Return `size` bytes as an array, which both systems pass on with fewer copies."""
        return _ARRAYS[size]

    @staticmethod
    def count(given: Sized) -> int:
        """Return the number of bytes."""
        return len(given)

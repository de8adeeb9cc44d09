"""What workers of Ray and Dask run; it is imported there once, before anything is measured."""

from __future__ import annotations

from collections.abc import Sized
from typing import Any

import numpy as np
from numpy.typing import NDArray

from chiron.evaluation.runtime.handlers.handing import TEXTS

_BYTES = {int(size): text.encode() for size, text in TEXTS.items()}
_ARRAYS = {size: np.frombuffer(data, np.uint8) for size, data in _BYTES.items()}


class Tasks:
    """Functions that tasks are made of, and methods of an actor."""

    @staticmethod
    def noop(*given: Any) -> Any:
        """Hand on the first of what comes."""
        return given[0]

    @staticmethod
    def give(size: int) -> bytes:
        """So many bytes."""
        return _BYTES[size]

    @staticmethod
    def array(size: int) -> NDArray[np.uint8]:
        """The same as an array, which both systems hand on with fewer copies."""
        return _ARRAYS[size]

    @staticmethod
    def count(given: Sized) -> int:
        """How many bytes came."""
        return len(given)

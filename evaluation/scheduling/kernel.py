"""Loads the compiled simulation before anything is timed."""

from __future__ import annotations

from predictor.engine import engine
from predictor.threads import Interpreter, Life
from workflow.errors import ChironError


def load_kernel() -> None:
    """Load the kernel, or compile it if that was never done.

    Raises
    ------
    ChironError
        ``no-numba``.
    """
    try:
        compiled = engine("compiled", {"f": (("cpu", 1.0),)}, Interpreter(5.0, 0.0, 0.0))
        compiled.ends_ms([Life(0.0, ("f",))], 1)
    except ImportError as error:
        message = f"numba cannot be loaded ({error}): pip install 'chiron-openfaas[fast]'"
        raise ChironError("no-numba", message) from None

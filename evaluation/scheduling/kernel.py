"""Loads the compiled simulation before anything is timed."""

from __future__ import annotations

from predictor.engine import engine
from predictor.threads import Interpreter, Life


def load_kernel() -> None:
    """Load the kernel, or compile it if that was never done."""
    compiled = engine("compiled", {"f": (("cpu", 1.0),)}, Interpreter(5.0, 0.0, 0.0))
    compiled.ends_ms([Life(0.0, ("f",))], 1)

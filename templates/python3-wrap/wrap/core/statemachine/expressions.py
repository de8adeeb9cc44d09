"""JSONata in a definition: strings in ``{% %}``, and what evaluates their expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

_OPENING, _CLOSING = "{%", "%}"

#: A function that expressions can call in addition to JSONata's own.
Function = Callable[..., Any]


class UndefinedError(ValueError):
    """An expression has no value."""


class Evaluator(Protocol):
    """Evaluates JSONata. The caller of a machine provides it, as the core imports no library."""

    def evaluate(
        self,
        expression: str,
        names: Mapping[str, Any],
        functions: Mapping[str, Function],
        now: float,
        seed: int,
    ) -> Any:
        """Return the value of `expression`.

        Args:
            names: variable name without ``$`` -> value.
            functions: additional functions; they replace JSONata's of the same name.
            now: the time of ``$now`` and ``$millis``, in seconds since 1970.
            seed: the seed of JSONata's own random functions.

        Raises UndefinedError if the expression has no value; ValueError, a line, if the evaluation
        fails or exceeds a limit; and any error of a function.
        """


def expression_in(text: str) -> str | None:
    """Return the expression in a string, or None. Raises ValueError for an unpaired ``{%``."""
    opened, closed = text.startswith(_OPENING), text.endswith(_CLOSING)
    if opened != closed or (opened and len(text) < len(_OPENING + _CLOSING)):
        raise ValueError(f"{text!a} has {_OPENING} or {_CLOSING}, not both around all of it")
    return text[len(_OPENING) : -len(_CLOSING)] if opened else None

"""JSONata in a definition: strings in ``{% %}``, and what evaluates their expressions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

_OPENING, _CLOSING = "{%", "%}"

#: A function that expressions call besides those of JSONata.
Function = Callable[..., Any]


class UndefinedError(ValueError):
    """An expression has no value."""


class Evaluator(Protocol):
    """Evaluates JSONata. Who runs a machine provides an evaluator, as the core has no library."""

    def evaluate(
        self,
        expression: str,
        names: Mapping[str, Any],
        functions: Mapping[str, Function],
        now: float,
        seed: int,
    ) -> Any:
        """The value of `expression`.

        Args:
            names: the values of variables, by names without ``$``.
            functions: functions besides those of JSONata, and in place of those of the same name.
            now: the time that ``$now`` and ``$millis`` return, in seconds since 1970.
            seed: what the random values of JSONata's own functions follow from.

        Raises UndefinedError if the expression has no value; ValueError, a line, if the evaluation
        fails or is out of bounds; and whatever a function raises.
        """


class NoEvaluator:
    """Stands for a missing evaluator in machines without JSONata."""

    def evaluate(
        self,
        expression: str,
        names: Mapping[str, Any],
        functions: Mapping[str, Function],
        now: float,
        seed: int,
    ) -> Any:
        """Raise ValueError."""
        raise ValueError("the machine runs without an evaluator of JSONata")


def expression_in(text: str) -> str | None:
    """The expression that a string is, or None; ValueError without one of ``{%``, ``%}``."""
    opened, closed = text.startswith(_OPENING), text.endswith(_CLOSING)
    if opened != closed or (opened and len(text) < len(_OPENING + _CLOSING)):
        raise ValueError(f"{text!a} has {_OPENING} or {_CLOSING}, not both around all of it")
    return text[len(_OPENING) : -len(_CLOSING)] if opened else None

"""Payload templates: JSON in which fields named ``....$`` are expressions."""

from __future__ import annotations

from typing import Any

from .chance import Chance
from .intrinsics import call, check_call, is_lasting_call
from .paths import check_path, evaluate, is_of_context

_DYNAMIC = ".$"


def render(
    template: Any, data: Any, context: Any, chance: Chance, known: dict[str, Any] | None = None
) -> Any:
    """Evaluate the ``.$`` fields of `template` at any depth; their names lose the suffix.

    Args:
        known: a cache, shared by the items of a Map: expression -> value determined by `data`.

    Raises StatesError: ``States.Runtime`` if a path finds nothing, ``States.ParameterPathFailure``
    if a path cannot be applied, ``States.IntrinsicFailure``.
    """
    if isinstance(template, dict):
        return {
            name.removesuffix(_DYNAMIC): resolve(each, data, context, chance, known)
            if name.endswith(_DYNAMIC)
            else render(each, data, context, chance, known)
            for name, each in template.items()
        }
    if isinstance(template, list):
        return [render(each, data, context, chance, known) for each in template]
    return template


def resolve(
    expression: str, data: Any, context: Any, chance: Chance, known: dict[str, Any] | None = None
) -> Any:
    """Evaluate a path or an intrinsic function. Raises as `render` does."""
    if known is None or not _is_lasting(expression):
        return _resolved(expression, data, context, chance)
    if expression not in known:
        known[expression] = _resolved(expression, data, context, chance)
    return known[expression]


def _resolved(expression: str, data: Any, context: Any, chance: Chance) -> Any:
    if expression.startswith("$"):
        return evaluate(expression, data, context)
    return call(expression, data, context, chance)


def _is_lasting(expression: str) -> bool:
    if expression.startswith("$"):
        return not is_of_context(expression)
    return is_lasting_call(expression)


def check_template(template: Any) -> None:
    """Raise ValueError, a line with the field's name, for an invalid template."""
    if isinstance(template, list):
        for each in template:
            check_template(each)
    if not isinstance(template, dict):
        return
    for name, each in template.items():
        if not name.endswith(_DYNAMIC):
            check_template(each)
            continue
        if name.removesuffix(_DYNAMIC) in template:
            raise ValueError(f"{name} and {name.removesuffix(_DYNAMIC)} are the same field")
        if not isinstance(each, str):
            raise ValueError(f"{name} has to be a string, a path or an intrinsic function")
        try:
            check_expression(each)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None


def check_expression(expression: str) -> None:
    """Raise ValueError, a line, unless `expression` is a path or an intrinsic function."""
    check = check_path if expression.startswith("$") else check_call
    check(expression)

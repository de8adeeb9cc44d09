"""Which kind of function each style is: the one place that has them all."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module

from wrap.functions.answers import METHODS
from wrap.functions.function_runner import FunctionRunner, Place

#: Style -> the module and the class of its functions; a wrap imports those that it has. Node's
#: styles call handlers with Express 4, with Express 5, by a callback, without a request.
KINDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(METHODS, ("python", "PythonHandler")),
    "command": ("command", "Command"),
    **dict.fromkeys(("node", "node22", "node-callback", "node-classic"), ("node", "Node")),
    "java": ("java", "Java"),
    "remote": ("remote", "Remote"),
}


def functions_of(place: Place) -> dict[str, FunctionRunner]:
    """The functions of a wrap by their names, of which none is imported yet.

    Raises what `FunctionRunner.of` raises, and ValueError for a style that is none of `KINDS`.
    """
    functions = place.wrap.functions
    for name, style in functions.items():
        if style not in KINDS:
            raise ValueError(f"function {name}: style {style!r} is none of {', '.join(KINDS)}")
    return {name: _kind(style).of(name, style, place) for name, style in functions.items()}


def _kind(style: str) -> type[FunctionRunner]:
    module, name = KINDS[style]
    found: type[FunctionRunner] = getattr(import_module(f"wrap.functions.{module}"), name)
    return found

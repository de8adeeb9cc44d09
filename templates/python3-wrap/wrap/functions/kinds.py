"""The kinds of functions by style: the only list of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from importlib import import_module

from wrap.functions.answers import METHODS
from wrap.functions.function_runner import FunctionRunner, Place

#: Style -> module and class of its functions; a wrap imports only the modules it needs. Node's
#: styles: Express 4, Express 5, handlers with a callback, handlers without a request.
KINDS: Mapping[str, tuple[str, str]] = {
    **dict.fromkeys(METHODS, ("python", "PythonHandler")),
    "command": ("command", "Command"),
    **dict.fromkeys(("node", "node22", "node-callback", "node-classic"), ("node", "Node")),
    "java": ("java", "Java"),
    "remote": ("remote", "Remote"),
}


def functions_of(place: Place, names: Iterable[str] | None = None) -> dict[str, FunctionRunner]:
    """Return function name -> runner for a wrap, or for some of its functions; imports no handler.

    Raises ValueError for a style outside `KINDS`, and the errors of `FunctionRunner`.
    """
    declared = place.wrap.functions
    functions = declared if names is None else {name: declared[name] for name in names}
    for name, style in functions.items():
        if style not in KINDS:
            raise ValueError(f"function {name}: style {style!r} is none of {', '.join(KINDS)}")
    return {name: _kind(style)(name, style, place) for name, style in functions.items()}


def _kind(style: str) -> type[FunctionRunner]:
    module, name = KINDS[style]
    found: type[FunctionRunner] = getattr(import_module(f"wrap.functions.{module}"), name)
    return found

"""Which kind of function each style is: the one place that has them all."""

from __future__ import annotations

from collections.abc import Mapping

from wrap.functions.answers import METHODS
from wrap.functions.command import COMMAND, Command
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.functions.java import JAVA, Java
from wrap.functions.node import STYLES, Node
from wrap.functions.python import PythonHandler
from wrap.functions.remote import REMOTE, Remote

#: Style -> the class of its functions.
KINDS: Mapping[str, type[FunctionRunner]] = {
    **dict.fromkeys(METHODS, PythonHandler),
    COMMAND: Command,
    **dict.fromkeys(STYLES, Node),
    JAVA: Java,
    REMOTE: Remote,
}


def functions_of(place: Place) -> dict[str, FunctionRunner]:
    """The functions of a wrap by their names, of which none is imported yet.

    Raises what `FunctionRunner.of` raises, and ValueError for a style that is none of `KINDS`.
    """
    functions = place.wrap.functions
    for name, style in functions.items():
        if style not in KINDS:
            raise ValueError(f"function {name}: style {style!r} is none of {', '.join(KINDS)}")
    return {name: KINDS[style].of(name, style, place) for name, style in functions.items()}

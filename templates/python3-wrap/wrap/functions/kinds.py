"""Which kind of function each style is: the one place that has them all."""

from __future__ import annotations

from collections.abc import Mapping

from wrap.config.wrap_spec import COMMAND, REMOTE
from wrap.functions.answers import METHODS
from wrap.functions.command import Command
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.functions.python import PythonHandler
from wrap.functions.remote import Remote

#: Style -> the class of its functions.
KINDS: Mapping[str, type[FunctionRunner]] = {
    **dict.fromkeys(METHODS, PythonHandler),
    COMMAND: Command,
    REMOTE: Remote,
}


def functions_of(place: Place) -> dict[str, FunctionRunner]:
    """The functions of a wrap by their names, of which none is imported yet.

    Raises ImportError as `FunctionRunner.of`.
    """
    return {
        name: KINDS[style].of(name, style, place) for name, style in place.wrap.functions.items()
    }

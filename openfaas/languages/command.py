"""The command of a function with ``lang: command``: its fprocess in words, for no shell."""

from __future__ import annotations

import re
import shlex

from chiron.openfaas.stack import StackFunction
from chiron.workflow.errors import ChironError

#: The lang of functions that are a command.
COMMAND = "command"
_NAMELESS = re.compile(r"\{(?:in|out):\}")


def command_of(name: str, function: StackFunction) -> tuple[str, ...]:
    """The program of `function`, called `name`, and its arguments.

    ``{in}`` and ``{out}`` in them stand for files in place of stdin and stdout, ``{in:a}`` for one
    with the stream of that name, ``{out:left}`` for one that becomes the output of that name.

    Raises ``no-command`` or ``bad-command``, with the function's name.
    """

    def fault(code: str, message: str) -> ChironError:
        whole = f"function {name}: {message}"
        return ChironError(code, whole, path=f"functions.{name}.fprocess", functions=[name])

    try:
        words = tuple(shlex.split(function.fprocess))
    except ValueError as error:
        message = f"fprocess cannot be split into words ({error}): close what is quoted"
        raise fault("bad-command", message) from None
    if not words or not words[0]:
        raise fault("no-command", "it has no fprocess: write its command there, such as sort -r")
    if "\0" in function.fprocess:
        raise fault("bad-command", "fprocess has a NUL in it, which no argument can have")
    if found := _NAMELESS.search(function.fprocess):
        message = f"{found[0]} lacks the name of a stream or an output: {{in:a}}, {{out:left}}"
        raise fault("bad-command", message)
    return words

"""Programs: functions with ``lang: command``; fprocess is split into words, without a shell."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import ClassVar

from chiron.openfaas.handlers import Extra, Handler, handler_folder
from chiron.openfaas.languages.language import Language
from chiron.openfaas.stack import StackFunction
from chiron.workflow.errors import ChironError

_NAMELESS = re.compile(r"\{(?:in|out):\}")
_STREAM = re.compile(r"\{in:([^{}]+)\}")


def command_of(name: str, function: StackFunction) -> tuple[str, ...]:
    """Return the program of `function`, called `name`, and its arguments.

    ``{in}`` and ``{out}`` stand for files instead of stdin and stdout. ``{in:a}`` is a file with
    the stream of that name, ``{out:left}`` a file that becomes the output of that name.

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


def on_stdin(function: StackFunction, streams: Iterable[str]) -> list[str]:
    """Return those of a task's `streams` without a place in the command of `function`."""
    placed = set(_STREAM.findall(function.fprocess))
    return [name for name in streams if name not in placed]


class Command(Language):
    """A program that reads stdin and writes stdout; it runs in its handler folder."""

    styles: ClassVar = {"command": "command"}

    def handler(self, name: str, function: StackFunction, folder: Path, extra: Extra) -> Handler:
        """See `Language.handler`; also raises the errors of `command_of`."""
        command = command_of(name, function)
        place = handler_folder(name, function, folder, "that its command runs in")
        return Handler(name, place, "command", command, extra, shares_process=False)

    def uses_fprocess(self, function: StackFunction) -> bool:
        return True


COMMAND = Command()

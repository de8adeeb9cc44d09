"""Imports the functions of a wrap, each into a module namespace of its own."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrap.command import Command
from wrap.declaration import Wrap
from wrap.namespace import Namespace
from wrap.process_state import ProcessState


@dataclass(frozen=True)
class Function:
    """A function that can be called: its name, its handler and the handler's style.

    `state` is what it was seen to change of what its process shares.
    """

    name: str
    style: str
    handle: Callable[..., Any]
    namespace: Namespace
    state: ProcessState


def load(wrap: Wrap, folder: Path) -> dict[str, Function]:
    """Function -> its handler, from ``folder/NAME/handler.py``, or what runs its command there.

    Raises
    ------
    ImportError
        A handler is missing, or has no ``handle``; a command's program is missing.
    """
    functions = {}
    for name, style in wrap.functions.items():
        function = _load(name, style, folder / name, wrap.commands.get(name))
        if len(wrap.functions) > 1:
            function.state.take_back()
        functions[name] = function
    return functions


def _load(name: str, style: str, folder: Path, command: list[str] | None) -> Function:
    state = ProcessState(folder)
    if command is not None:
        return Function(name, style, Command(name, command, folder), Namespace(name, folder), state)
    if not (folder / "handler.py").is_file():
        raise ImportError(f"function {name}: {folder / 'handler.py'} is missing")
    namespace = Namespace(name, folder)
    with state.importing():
        handle = getattr(namespace.load("handler"), "handle", None)
    if not callable(handle):
        raise ImportError(f"function {name}: {folder / 'handler.py'} defines no handle()")
    return Function(name, style, handle, namespace, state)

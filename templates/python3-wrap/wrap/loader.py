"""Imports the functions of a wrap, each into a module namespace of its own.

The files of a function are in ``functions/NAME/function``, as alone they are in ``function`` below
the working directory. ``functions/NAME`` is the working directory while the function is imported,
and of each process that runs this function only.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from wrap.command import Command
from wrap.declaration import Wrap
from wrap.namespace import Namespace
from wrap.public import PACKAGE


@dataclass(frozen=True)
class Function:
    """A function that can be called: its name, its handler and the handler's style.

    `directory` is the working directory that it has where its processes run no other function.
    """

    name: str
    style: str
    handle: Callable[..., Any]
    namespace: Namespace
    directory: str


def load(wrap: Wrap, folder: Path) -> dict[str, Function]:
    """Function -> its handler, from ``folder/NAME/function``, or what runs its command there.

    Raises
    ------
    ImportError
        A handler is missing, or has no ``handle``; a command's program is missing.
    """
    return {
        name: _load(name, style, folder / name, wrap.commands.get(name))
        for name, style in wrap.functions.items()
    }


def _load(name: str, style: str, folder: Path, command: list[str] | None) -> Function:
    directory, folder = str(folder), folder / PACKAGE
    if command is not None:
        call = Command(name, command, folder)
        return Function(name, style, call, Namespace(name, folder), directory)
    if not (folder / "handler.py").is_file():
        raise ImportError(f"function {name}: {folder / 'handler.py'} is missing")
    namespace = Namespace(name, folder)
    before = Path.cwd()
    os.chdir(directory)
    try:
        handle = getattr(namespace.load("handler"), "handle", None)
        directory = str(Path.cwd())  # a module may choose another
    finally:
        os.chdir(before)
    if not callable(handle):
        raise ImportError(f"function {name}: {folder / 'handler.py'} defines no handle()")
    return Function(name, style, handle, namespace, directory)

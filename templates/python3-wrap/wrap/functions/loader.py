"""Imports the functions of a wrap, each into a module namespace of its own.

Further processes are forked from a process that has imported their functions, and share its memory.
A function is imported late where its import leaves open what processes cannot share: by each
process that runs it, and by no process from which others are forked. That one imports the libraries
of late functions, which takes most of the time.

The files of a function are in ``functions/NAME/function``, as alone they are in ``function`` below
the working directory. ``functions/NAME`` is the working directory while the function is imported,
and of each process that runs this function only.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from wrap.config.wrap_spec import Wrap
from wrap.functions import leftovers
from wrap.functions.command import Command
from wrap.functions.namespace import Namespace
from wrap.functions.process_state import ProcessState
from wrap.functions.public import PACKAGE, is_public

#: What `load_shared` calls the libraries of late functions, as no function is called.
LIBRARIES = ""


class Late(NamedTuple):
    """What an import has left open that processes cannot share, and the libraries it imported."""

    opens: list[str]
    libraries: list[str]


class Function:
    """A function of a wrap.

    Parameters
    ----------
    name, style
        Its name, and the style of its handler.
    folder
        Where its folder ``function`` is, with its modules.
    command
        What it runs where it has no handler.
    alone
        Whether its wrap has no other function.
    apart
        Whether its processes run no other function.

    Attributes
    ----------
    handle
        Calls the handler. The first call imports it, if `load` has not.
    is_loaded
        Whether it can be called without an import.
    loaded
        Called when the handler has been imported.
    unsettled
        Whether this process has to take the function's working directory: see `settle`.
    state
        What it was seen to change of what its process shares.
    """

    def __init__(
        self,
        name: str,
        style: str,
        folder: Path,
        command: list[str] | None,
        *,
        alone: bool,
        apart: bool,
    ) -> None:
        self.name = name
        self.style = style
        self._directory, folder = str(folder), folder / PACKAGE
        self._apart = self.unsettled = apart
        self.state = ProcessState(folder, alone=alone)
        self.namespace = Namespace(name, folder)
        self.loaded: Callable[[], object] = lambda: None
        self._folder = folder
        self._alone = alone
        self._loading = threading.Lock()
        self.is_loaded = command is not None
        self.handle: Callable[..., Any] = Command(name, command, folder) if command else self._first

    @property
    def sees_head(self) -> bool:
        """Whether its handler may look at more of a request than the body."""
        return self.style != "flask" or self.namespace.uses_flask

    def load(self) -> None:
        """Import the handler, unless that has been done.

        Raises
        ------
        ImportError
            The handler is missing, or has no ``handle``.
        """
        with self._loading:
            if not self.is_loaded:
                self.handle = self._imported()
                self.is_loaded = True
                self.loaded()

    def settle(self) -> None:
        """Take its working directory, as the only function that this process runs."""
        os.chdir(self._directory)
        self.unsettled = False

    def _imported(self) -> Callable[..., Any]:
        handler = self._folder / "handler.py"
        if not handler.is_file():
            raise ImportError(f"function {self.name}: {handler} is missing")
        before = Path.cwd()
        os.chdir(self._directory)
        try:
            with self.state.importing():
                module = self.namespace.load("handler")
            self._directory = str(Path.cwd())  # a module may choose another
            if not self._alone:
                self.state.take_back()
        finally:
            os.chdir(self._directory if self._apart and not self.unsettled else before)
        handle: Callable[..., Any] | None = getattr(module, "handle", None)
        if not callable(handle):
            raise ImportError(f"function {self.name}: {handler} defines no handle()")
        return handle

    def _first(self, *arguments: Any) -> Any:
        self.load()
        self.state.set_again()
        return self.handle(*arguments)


def functions_of(wrap: Wrap, folder: Path) -> dict[str, Function]:
    """The functions of `wrap` by their names, of which none is imported yet.

    Raises
    ------
    ImportError
        A command's program is missing.
    """
    alone, apart = len(wrap.functions) == 1, wrap.apart
    return {
        name: Function(
            *(name, style, folder / name, wrap.commands.get(name)),
            alone=alone,
            apart=name in apart,
        )
        for name, style in wrap.functions.items()
    }


def load_shared(functions: Iterable[Function], libraries: Iterable[str]) -> dict[str, Late]:
    """Import `libraries` and `functions` in a process from which others are forked.

    Returns those that leave open what processes cannot share, by their names: such functions have
    to be imported late. Raises ImportError as `Function.load` does.
    """
    left, imported = dict[str, leftovers.Open](), dict[str, list[str]]()
    before = leftovers.look()
    for name, load in _imports(functions, libraries):
        known = set(sys.modules)
        load()
        after = leftovers.look()
        left[name], before = after.since(before), after
        imported[name] = [each for each in sys.modules if each not in known and is_public(each)]
    outlasting = leftovers.outlasting([number for each in left.values() for number in each.threads])
    found = {name: each.unshareable(outlasting) for name, each in left.items()}
    return {
        name: Late(list(dict.fromkeys(leftovers.named(each))), imported[name])
        for name, each in found.items()
        if any(each)
    }


def _imports(
    functions: Iterable[Function], libraries: Iterable[str]
) -> Iterator[tuple[str, Callable[[], None]]]:
    yield LIBRARIES, partial(_import, libraries)
    for function in functions:
        yield function.name, function.load


def _import(libraries: Iterable[str]) -> None:
    for name in libraries:
        with contextlib.suppress(Exception):  # the function that needs it raises what this raises
            importlib.import_module(name)

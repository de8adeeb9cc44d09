"""A Python handler: imported from the function's folder and called as its template calls it.

A function's files are in ``functions/NAME/function``; alone they are in ``function`` below the
working directory. ``functions/NAME`` is the working directory during the import, and in each
process that runs only this function.
"""

from __future__ import annotations

import importlib
import os
import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

from wrap.functions import styles
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.functions.namespace import Namespace
from wrap.functions.process_state import Changes, ProcessState
from wrap.functions.public import PACKAGE
from wrap.observe import log

if TYPE_CHECKING:
    from wrap.core.wrap_spec import Seen, Wrap
    from wrap.functions.by_flask import Application
    from wrap.functions.task_io import TaskIO
    from wrap.values.value import Object


class PythonHandler(FunctionRunner):
    """A function with a ``handler.py``, or a package ``handler``."""

    is_prepared = False

    def __init__(self, name: str, style: str, place: Place) -> None:
        super().__init__(name, style, place)
        wrap, directory = place.wrap, place.folder / name
        self._directory, self._folder = str(directory), directory / PACKAGE
        self._alone = len(wrap.functions) == 1
        #: Whether its processes run no other function.
        self._apart = self._alone if place.one_process else not _shares_process(name, wrap)
        self.unsettled = self._apart
        #: Whether its import must not change the working directory, as other tasks run.
        self._stays = place.is_interpreter and not self._alone
        self._state = ProcessState(self._folder, alone=self._alone)
        self._namespace = Namespace(name, self._folder)
        # Import the libraries of each call before processes are forked.
        is_forked = name in wrap.forked
        if self._namespace.uses_flask or (is_forked and self._namespace.answers_unusually):
            importlib.import_module("wrap.functions.by_flask")
        elif style != "flask":
            importlib.import_module("werkzeug.wrappers")
        self._application: Application | None = None
        self._loading = threading.Lock()
        self._raw = styles.is_raw()
        self._module: Any = None

    @property
    def sees_head(self) -> bool:  # type: ignore[override]
        return self.style != "flask" or self._namespace.uses_flask

    @property
    def uses_io(self) -> bool:  # type: ignore[override]
        return self._namespace.uses_io

    @property
    def changes(self) -> Changes:  # type: ignore[override]
        return self._state.changes

    def prepare(self) -> None:
        """Import the handler, once.

        Raises ImportError if the handler is missing or defines no ``handle``.
        """
        with self._loading:
            if not self.is_prepared:
                self._module = self._imported()
                if self._namespace.uses_flask and self._application is None:
                    from wrap.functions.by_flask import application

                    self._application = application(self._directory, self.style)
                self.is_prepared = True
                self.after_import()

    def settle(self) -> None:
        os.chdir(self._directory)
        self.unsettled = False

    def restore(self) -> None:
        if self._state.waits:
            self._state.set_again()

    def observed(self) -> AbstractContextManager[None]:
        return self._state.running()

    def arguments(
        self, given: Object, task_io: TaskIO | None, trace: Mapping[str, str]
    ) -> tuple[Any, ...]:
        raw = styles.is_raw() if self._alone else self._raw  # a call may set RAW_BODY for the next
        return styles.arguments(self.style, given, trace, raw=raw)

    def surroundings(
        self, given: Object, trace: Mapping[str, str]
    ) -> AbstractContextManager[object]:
        """Return the context of a Flask request if the handler uses Flask."""
        if self._namespace.uses_flask:
            from wrap.functions import by_flask

            if self._application is None:  # the first call imports the handler, or Flask
                with self._loading:
                    if self._application is None:
                        self._application = by_flask.application(self._directory, self.style)
            return by_flask.flask_request(self._application, given, trace)
        return super().surroundings(given, trace)

    def call(self, *arguments: Any) -> Any:
        """Call the handler; imports it first if `prepare` did not."""
        if self._module is None:
            self.prepare()
            self._state.set_again()
        return self._module.handle(*arguments)  # looked up at each call, as in the template

    def answer(self, value: Any, seen: Seen) -> Object:
        return styles.output(self.style, value, seen)

    def _imported(self) -> ModuleType:
        handler = self._folder / "handler.py"
        if not (handler.is_file() or (self._folder / "handler" / "__init__.py").is_file()):
            raise ImportError(f"function {self.name}: {handler} is missing")
        before = Path.cwd()
        os.chdir(before if self._stays else self._directory)
        try:
            with self._state.importing():
                module = self._namespace.load("handler")
                self._raw = styles.is_raw()  # its import may set RAW_BODY
            self._directory = str(Path.cwd())  # its import may change the directory
            if not self._alone:
                self._state.take_back()
        finally:
            log.end_lines()  # else each forked process inherits an unfinished line
            os.chdir(self._directory if self._apart and not self.unsettled else before)
        if not callable(getattr(module, "handle", None)):
            raise ImportError(f"function {self.name}: {module.__file__} defines no handle()")
        return module


def _shares_process(function: str, wrap: Wrap) -> bool:
    """Whether a process runs `function` together with other functions."""
    processes = ({wrap.tasks[task] for task in process} for process in wrap.processes)
    return any(function in names and len(names) > 1 for names in processes)

"""What a task emits before its end: each output is a result of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from wrap import styles
from wrap.errors import TaskError
from wrap.messages import Result

#: What is emitted is as what a handler of this style answers, whatever the handler's is.
_STYLE = "flask"
#: Takes the result of an output.
Emitted = Callable[[Result], None]


class Outputs:
    """The outputs of one run of a task that others need.

    Parameters
    ----------
    awaited
        Their numbers, by their names.
    result
        That of the task, as it begins.
    """

    def __init__(self, awaited: Mapping[str, int], result: Result, emitted: Emitted) -> None:
        self._awaited = awaited
        self._left = dict(awaited)
        self._others = set[str]()
        self._result = result
        self._emitted = emitted

    def emit(self, name: str, value: Any) -> None:
        """As `chiron_io.emit`: what nobody needs goes nowhere.

        Raises TaskError as `styles.output` does.
        """
        if name not in self._awaited:
            self._others.add(str(name))
            return
        if name not in self._left:
            raise ValueError(f"{name} was emitted before")
        self._give(name, output=styles.output(_STYLE, value))

    def check(self) -> None:
        """The task has ended well. Raises TaskError where others wait for more of it."""
        if self._left:
            others = ", ".join(sorted(self._others))
            hint = (
                f"it has emitted {others}, which nothing takes"
                if others
                else "in threads that it starts, emit does nothing"
            )
            message = f"the handler has ended without emitting {', '.join(self._left)}: {hint}"
            raise TaskError("not-emitted", message)

    def fail(self, error: dict[str, Any]) -> None:
        """The task has failed, and so does what it has not emitted."""
        for name in [*self._left]:
            self._give(name, error=error)

    def _give(self, name: str, **how: Any) -> None:
        number = self._left.pop(name)
        now = time.monotonic()
        self._emitted(replace(self._result, task=number, ended=now, emitted=name, **how))

"""Calls of workers: one that is lost gets none before another has taken its place."""

from __future__ import annotations

from collections.abc import Collection

from wrap.core import commands as do
from wrap.core.commands import Command
from wrap.core.errors import TaskError
from wrap.core.program import Call, Place


class Workers:
    """The workers of one execution.

    Parameters
    ----------
    commands
        Gets what is to be done.

    Attributes
    ----------
    held_back
        The calls that wait until a lost worker has ended, by its process.
    """

    def __init__(self, commands: list[Command]) -> None:
        self.held_back: dict[Place, list[Call]] = {}
        self._commands = commands

    def call(self, call: Call) -> None:
        """Call a worker. Hold the call of a lost worker back until the worker has ended.

        The inputs of the call may be gone with the worker.
        """
        if call.place in self.held_back:
            self.held_back[call.place].append(call)
        else:
            self._commands.append(do.CallWorker(call))

    def lose(
        self, process: int, late: Collection[int] = (), error: TaskError | None = None
    ) -> None:
        """Hold calls back until another worker has taken the place of this one."""
        self.held_back[process] = []
        self._commands.append(do.LoseWorker(process, late, error))

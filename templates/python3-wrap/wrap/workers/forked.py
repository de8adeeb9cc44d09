"""What a further process does, between the fork and its end.

It shares nothing with other processes that its functions have opened or seeded when they were
imported: generators of random numbers have been seeded for it alone, and functions that had to be
late are imported now.
"""

from __future__ import annotations

import contextlib
import socket
from collections.abc import Iterable
from functools import partial

from wrap.config.wrap_spec import Wrap
from wrap.functions import leftovers, runner
from wrap.functions.function_runner import FunctionRunner
from wrap.http import server
from wrap.workers import randomness, worker_main


class WorkerProgram:
    """What further processes of a wrap do, whose `functions` have been imported, but for late ones.

    It is made in the process that they are forked from, before its objects are frozen.
    """

    def __init__(self, wrap: Wrap, functions: dict[str, FunctionRunner]) -> None:
        self._wrap = wrap
        self._run_task = partial(runner.run, wrap=wrap, functions=functions)
        self._late = {
            name: functions[name] for name in wrap.forked if not functions[name].is_prepared
        }
        self._seeds = randomness.generators() if wrap.slots else []
        self._files = leftovers.writers() if wrap.slots else []
        leftovers.flush(self._files)  # else each process writes out what was held back by now

    def renew(self) -> None:
        """Seed what the next process is to have, in the one that it is forked from.

        In the new process this would take twenty times as long, as all pages that it needs are
        mapped there first.
        """
        for seed in self._seeds:
            seed()

    def serve(self, channel: socket.socket, process: int) -> None:
        """Be the process of that number in the plan, or one whose calls tell it, with 0."""
        for function in self._late.values():
            function.after_import = _seed_made
        if self._late and process:
            self._load(self._wrap.processes[process])
        known = leftovers.count()
        worker_main.serve(channel, self._wrap, self._run_task, self._load if self._late else None)
        # It does not end as programs do, which write out what files hold back.
        leftovers.flush(self._files)
        if self._late or not known or leftovers.count() != known:
            leftovers.flush(leftovers.writers())

    def _load(self, tasks: Iterable[int]) -> None:
        """Import the late functions of `tasks`. Where one fails, its call tries again and tells."""
        for name in self._late.keys() & {self._wrap.function_of(each) for each in tasks}:
            with server.OneProcess(), contextlib.suppress(Exception):
                self._late[name].prepare()


def _seed_made() -> None:
    """Seed what a late function has made: other processes make the same."""
    for seed in randomness.generators():
        seed()

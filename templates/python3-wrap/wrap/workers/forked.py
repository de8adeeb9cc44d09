"""A worker's program, between the fork and its end.

It shares nothing with other processes that its functions have opened or seeded at import. Random
generators were seeded for it alone, and functions with a late import are imported now. At its end
it waits for the threads that handlers have left, as a program does.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Callable, Iterable
from functools import partial

from wrap.core.wrap_spec import Wrap
from wrap.functions import leftovers, runner
from wrap.functions.function_runner import FunctionRunner
from wrap.http.server.program import OneProcess
from wrap.workers import randomness, worker_main

#: The functions that Python calls before it waits for threads; `concurrent.futures` adds to them.
_AT_EXIT: list[Callable[[], None]] = vars(threading)["_threading_atexits"]


class WorkerProgram:
    """The program of a wrap's workers; its `functions` are imported, except late ones.

    It is made in the process that workers are forked from, before its objects are frozen.
    """

    def __init__(self, wrap: Wrap, functions: dict[str, FunctionRunner]) -> None:
        self._wrap = wrap
        self._run_task = partial(runner.run, wrap=wrap, functions=functions)
        self._late = {
            name: functions[name] for name in wrap.forked if not functions[name].is_prepared
        }
        self._seeds = randomness.generators() if wrap.slots else []
        self._files = leftovers.writers() if wrap.slots else []
        leftovers.flush(self._files)  # else each worker writes out what the buffers hold by now
        #: The threads that imports have started, which end with the process.
        self._threads = set[threading.Thread]()

    def renew(self) -> None:
        """Seed the generators of the next worker, in the process that it is forked from.

        In the new process this takes twenty times as long, as all pages that it needs are mapped
        first.
        """
        for seed in self._seeds:
            seed()

    def serve(self, channel: socket.socket, process: int) -> None:
        """Serve as the process of that number in the plan; with 0, the calls tell the process."""
        for function in self._late.values():
            function.after_import = self._imported
        if self._late and process:
            self._load(self._wrap.processes[process])
        known = leftovers.count()
        worker_main.serve(channel, self._wrap, self._run_task, self._load if self._late else None)
        # It ends by `os._exit`, so wait for threads and flush files here, as programs do.
        flush = partial(self._flush, known)
        if self._left() or self._threads:
            self._await_threads(flush)
        flush()

    def _load(self, tasks: Iterable[int]) -> None:
        """Import the late functions of `tasks`. If one fails, its call retries and reports it."""
        for name in self._late.keys() & {self._wrap.function_of(each) for each in tasks}:
            with OneProcess(), contextlib.suppress(Exception):
                self._late[name].prepare()

    def _imported(self) -> None:
        """Seed the generators that a late import has made, as other processes make the same."""
        for seed in randomness.generators():
            seed()
        self._threads.update(threading.enumerate())

    def _left(self) -> list[threading.Thread]:
        """Return the threads left by handlers that Python waits for before it ends."""
        known = {*self._threads, threading.main_thread()}
        return [each for each in threading.enumerate() if not each.daemon and each not in known]

    def _await_threads(self, flush: Callable[[], None]) -> None:
        """Wait for the threads that handlers have left, as long as a request may take."""
        limit_s = self._wrap.timeout_s

        def give_up() -> None:
            names = ", ".join(each.name for each in self._left())
            print(f"ended {names}, still running {limit_s:g} s after the answer of its request")
            flush()
            os._exit(1)

        timer = threading.Timer(limit_s, give_up)
        timer.daemon = True
        timer.start()
        for call in reversed(_AT_EXIT):  # executors finish the work they were given
            call()
        for thread in self._left():
            thread.join()
        timer.cancel()

    def _flush(self, known: int) -> None:
        """Flush the buffers of files; `known` is the number of descriptors at the beginning."""
        leftovers.flush(self._files)
        if self._late or not known or leftovers.count() != known:
            leftovers.flush(leftovers.writers())

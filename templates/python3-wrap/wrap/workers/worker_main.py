"""The main loop of a worker: it runs the tasks that it is called for, and sends each result.

It runs until the other end of its socket is closed: after one execution with the mechanism fork,
after many with pool. It serves one execution at a time, and keeps the execution's objects until the
last of its tasks has ended.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache, partial

from wrap.core.dag import Engine, Part, users_among
from wrap.core.program import MAIN, Key, given_to, keys
from wrap.core.start_queue import StartQueue
from wrap.core.wrap_spec import Wrap
from wrap.event_loop.threads import ThreadPool
from wrap.functions.last_begun import LastBegun
from wrap.functions.task_io import Access, Begins, Emitted
from wrap.net import framing
from wrap.net.messages import Ident, Request, Result
from wrap.pipes.broker import ask
from wrap.values.inputs import Inputs
from wrap.values.shared_memory import Shared
from wrap.values.value import Object

#: Runs a task. Arguments: task, source of its input, execution, process number, receiver of its
#: outputs, access to streams, callback that lets the next task begin.
RunTask = Callable[[int, Callable[[], Object], Ident, int, Emitted, Access, Begins | None], Result]
#: Imports the functions of tasks that are not imported yet, in the calling thread.
Load = Callable[[Iterable[int]], None]
#: An output of at most so many bytes is sent even if nobody else needs it: if the process is lost,
#: the task need not run again.
_KEPT = 1 << 12
#: How many different groups of tasks are cached.
_PARTS = 1024


def serve(
    channel: socket.socket,
    wrap: Wrap,
    run_task: RunTask,
    load: Load | None = None,
    threads: ThreadPool | None = None,
) -> None:
    """Serve the requests of `channel` until it ends."""
    ready = time.monotonic()
    os.register_at_fork(after_in_child=channel.close)  # not in children of handlers
    worker = _Worker(channel, wrap, run_task, load, threads or ThreadPool(), ready)
    incoming = framing.read(channel)
    while worker.serve_next(incoming):
        pass


class _Worker:
    def __init__(
        self,
        channel: socket.socket,
        wrap: Wrap,
        run_task: RunTask,
        load: Load | None,
        threads: ThreadPool,
        ready: float,
    ) -> None:
        self._channel = channel
        self._wrap = wrap
        self._graph = wrap.graph
        self._run_task = run_task
        self._load = load
        self._threads = threads
        self._sending = threading.Lock()
        self._calling = threading.Lock()
        self._counting = threading.Lock()
        self._queue = StartQueue[tuple[_Group, int]]()
        self._last_begun = LastBegun()
        self._part = lru_cache(_PARTS)(self._part_of)
        self._users = cache(self._users_in)
        self._ended: set[int] = set()
        self._data = Inputs({})
        #: The number of unanswered tasks, and of tasks that it will be called for later.
        self._left = self._rest = 0
        self._number: int | None = None
        self._ready: float | None = ready

    def serve_next(self, incoming: Iterator[framing.Frame | Shared]) -> bool:
        """Begin the next group of tasks; return whether there is one."""
        request = Request.read(incoming)
        if request is None:
            return False
        if request.ident.number != self._number:
            if self._number is not None:
                self._ready = time.monotonic()
            self._number, self._left = request.ident.number, 0
            self._data, self._ended = Inputs({}), set()
        with self._counting:
            self._left += len(request.tasks)
            self._rest = request.rest
        self._run(request)
        return True

    def _run(self, request: Request) -> None:
        """Run a group of tasks, in this thread if no other request can come meanwhile."""
        self._data.add(request.objects)
        request.objects.clear()  # so that dropping them in `_data` frees them
        tasks = tuple(request.tasks)
        if self._load is not None and not (request.alone and not self._graph.instances):
            self._load(tasks)  # modules expect to be imported in the main thread
        if self._graph.instances:
            group = _Group(request, self._data, None)
            self._begin(group, self._wrap.run_for([*tasks]))
            self._call()
            return
        engine = Engine(self._part(tasks, request.live)) if len(tasks) > 1 else None
        group = _Group(request, self._data, engine)
        begins = engine.start(self._data).begins if engine else [*tasks]
        self._begin(group, self._wrap.run_for(begins))
        if request.alone:
            self._take()
        else:
            self._call()

    def _begin(self, group: _Group, tasks: Iterable[int]) -> None:
        self._queue.add((group, task) for task in tasks)

    def _call(self) -> None:
        """Call a thread for the waiting tasks, by the rule of `wrap.core.start_queue`."""
        with self._calling:
            self._start()

    def _start(self) -> None:
        if self._queue.call() is not None:
            try:
                self._threads.start(self._come)
            except RuntimeError:  # the running threads take the waiting tasks later
                self._queue.came()

    def _come(self) -> None:
        self._last_begun.await_wait()
        self._queue.came()
        self._take()

    def _take(self) -> None:
        """Run one task after another in this thread, while some wait."""
        while True:
            with self._calling:
                taken = self._queue.take()
                if taken is None:
                    return
                is_awaited = self._queue.is_preparing(taken)
            self._work(*taken, partial(self._prepared, taken) if is_awaited else None)

    def _prepared(self, task: tuple[_Group, int]) -> None:
        """Note that a prepared task has got to its handler, or has failed.

        Starting a thread releases the GIL; the lock keeps others from taking a task meanwhile.
        """
        self._last_begun.begins()
        with self._calling:
            if self._queue.prepared(task):
                self._start()

    def _part_of(self, tasks: tuple[int, ...], live: bool) -> Part:
        graph = self._wrap.live_graph if live else self._graph
        return graph.part(dict.fromkeys(tasks, MAIN), ())

    def _work(self, group: _Group, task: int, begins: Begins | None) -> None:
        """Run a task in this thread; the tasks that its end begins wait for a thread."""
        request, data = group.request, group.data
        given = partial(data.resolve, self._graph.source_of(task))
        emitted = partial(self._emitted, group)
        client = partial(ask, writes=True) if request.piecewise else None
        access = Access(request.ident.number, ask if request.live else None, data.resolve, client)
        ident, process = request.ident, request.process
        result = self._run_task(task, given, ident, process, emitted, access, begins)
        self._last_begun.ends()
        self._begin(group, self._answer(group, result))

    def _emitted(self, group: _Group, result: Result) -> None:
        if result.place is not None:  # an output for buckets, which the server holds
            with self._sending, contextlib.suppress(ConnectionError):
                framing.write(self._channel, result.frames_within())
            return
        self._begin(group, self._answer(group, result))
        self._call()

    def _answer(self, group: _Group, result: Result) -> list[int]:
        """Send the result; return the tasks that begin now.

        The lock covers both, else a task that begins could send its result before the awaited one.
        An output that was not requested exists already: it was given again beside a lost output.
        """
        if self._wrap.emits and result.task not in group.request.tasks:
            return []
        with self._sending:
            begins = group.ended(result)
            output = result.output
            if result.task not in group.request.gives and output and output.size > _KEPT:
                result.output = None
            result.ready, self._ready = self._ready, None
            if not self._graph.instances:
                self._ended.add(result.task)
                if group.data.large:
                    self._release(group, result.task)
            with self._counting:
                self._left -= 1
                if not self._left and not self._rest:
                    self._data = Inputs({})
            # After the result has been sent, the next execution may begin.
            with contextlib.suppress(ConnectionError):  # nobody waits any more: we are killed
                framing.write(self._channel, result.frames_within())
            if self._graph.instances:
                group.data.drop(given_to(result.task))
                group.data.drop(result.task)
        return self._wrap.run_for(begins)

    def _release(self, group: _Group, ended: int) -> None:
        """Drop the large objects that none of this process's tasks needs any more."""
        users = self._users(group.request.process)
        for key in (ended, *keys(self._graph.sources[ended])):
            if key in group.data.large and self._ended.issuperset(users.get(key, ())):
                group.data.drop(key)

    def _users_in(self, process: int) -> dict[Key, list[int]]:
        return users_among(self._wrap.processes[process], self._graph.sources)


class _Group:
    """The tasks of one request, with an engine if there are several."""

    def __init__(self, request: Request, data: Inputs, engine: Engine | None) -> None:
        self.request = request
        self.data = data
        self._engine = engine

    def ended(self, result: Result) -> list[int]:
        """Return the tasks that begin when one has ended; none after a failed task."""
        output = result.output
        if output is None:
            return []
        self.data.add({result.task: output})
        return self._engine.ended(result.task).begins if self._engine else []

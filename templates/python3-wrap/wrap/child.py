"""What a further process does: it reads a job, runs its tasks as threads, sends the results.

It goes on until the other end of its socket is closed: after one job where the mechanism is
fork, after many where it is pool.
"""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterator
from functools import partial
from queue import SimpleQueue

from wrap import frames
from wrap.messages import Job, Result
from wrap.threads import ThreadPool

RunTask = Callable[[int, Job], Result]


def serve(channel: socket.socket, run_task: RunTask) -> None:
    """Serve jobs from `channel` until it ends."""
    ready = time.monotonic()
    os.register_at_fork(after_in_child=channel.close)  # our end, and not also a handler's child's
    threads = ThreadPool()
    incoming = frames.read(channel)
    served = False
    while job := Job.read(incoming):
        if served:
            ready = time.monotonic()
        served = True
        for result in _results(job, run_task, threads):
            result.ready = ready
            frames.write(channel, result.frames())


def _results(job: Job, run_task: RunTask, threads: ThreadPool) -> Iterator[Result]:
    """The results as they come. A task that is alone runs here: a process can be killed."""
    if len(job.inputs) == 1:
        (task,) = job.inputs
        yield run_task(task, job)
        return
    done: SimpleQueue[Result] = SimpleQueue()
    for task in job.inputs:
        threads.start(partial(_put, done, run_task, task, job))
    for _ in job.inputs:
        yield done.get()


def _put(done: SimpleQueue[Result], run_task: RunTask, task: int, job: Job) -> None:
    done.put(run_task(task, job))

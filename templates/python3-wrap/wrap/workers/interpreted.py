"""The program of a sub-interpreter: it runs the tasks of one process of the plan."""

from __future__ import annotations

import _thread
import contextlib
import ctypes
import importlib
import os
import socket
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from wrap.core.wrap_spec import Wrap
from wrap.event_loop.threads import Cancelled, ThreadPool, keep_idle
from wrap.functions import runner
from wrap.functions.exit_guard import contain
from wrap.functions.function_runner import FunctionRunner, Place
from wrap.functions.kinds import functions_of
from wrap.observe import log
from wrap.pipes import broker
from wrap.values.memfd_pool import MEMFDS
from wrap.workers import worker_main
from wrap.workers.interpreters import CANCEL, READY

#: How often to look whether the threads of handlers have ended, in seconds.
_LOOK_S = 0.01


def main(
    *,
    channel: int,
    control: int,
    process: int,
    image: str,
    address: str,
    gateway_url: str,
    longest: int,
    idle_threads: int,
    shared: int,
) -> None:
    """Import the functions of a process of the plan, and serve its tasks until told to end.

    Args:
        channel, control: descriptors of its ends of both sockets.
        image: the folder of the wrap.
        address: where the wrap's workers ask for streams.
        gateway_url, longest: see `wrap.functions.function_runner.Place`.
        idle_threads, shared: the threads, and the bytes of shared memory, that it keeps for reuse.

    Raises RuntimeError if threads of its handlers go on running.
    """
    contain()
    log.install()
    broker.ask_at(f"{address}-streams")
    keep_idle(idle_threads)
    MEMFDS.keep(shared)
    with (
        socket.socket(fileno=os.dup(control)) as orders,
        socket.socket(fileno=os.dup(channel)) as requests,
    ):
        try:
            wrap: Wrap = importlib.import_module("function.handler").WRAP
            functions = _imported(wrap, process, Path(image), gateway_url, longest)
        except Exception as error:
            orders.send(str(error).encode())
            return
        run_task, threads = partial(runner.run, wrap=wrap, functions=functions), ThreadPool()
        serve = partial(worker_main.serve, requests, wrap, run_task, threads=threads)
        threading.Thread(target=_until_cancelled, args=(serve, requests), daemon=True).start()
        orders.send(READY)
        order = orders.recv(len(CANCEL))
        end(threads, cancels=order == CANCEL, limit_s=wrap.timeout_s)


def _until_cancelled(serve: Callable[[], None], requests: socket.socket) -> None:
    try:
        with contextlib.suppress(Cancelled, ConnectionError):
            serve()
    finally:
        with contextlib.suppress(OSError):  # the server has ended it
            requests.shutdown(socket.SHUT_RDWR)


def _imported(
    wrap: Wrap, process: int, image: Path, gateway_url: str, longest: int
) -> dict[str, FunctionRunner]:
    place = Place(
        *(wrap, image / "function" / "functions", gateway_url, longest),
        one_process=True,
        is_interpreter=True,
    )
    names = dict.fromkeys(wrap.tasks[task] for task in wrap.processes[process])
    functions = functions_of(place, names)
    for name, function in functions.items():
        if not function.in_python:
            raise ImportError(f"function {name} is not in Python")
        try:
            function.prepare()
        except Exception as error:
            raise ImportError(f"function {name}: {error}") from error
    return functions


def end(threads: ThreadPool, *, cancels: bool, limit_s: float) -> None:
    """Wait for all other threads of this interpreter, which `cancels` or not.

    Raises RuntimeError if some still run after `limit_s` seconds.
    """
    keep_idle(0)
    if cancels:
        for each in threading.enumerate():
            if each is not threading.current_thread():
                ctypes.pythonapi.PyThreadState_SetAsyncExc(
                    ctypes.c_ulong(each.ident or 0), ctypes.py_object(Cancelled)
                )
    until = time.monotonic() + limit_s
    while _thread._count():
        if time.monotonic() > until:
            raise RuntimeError("threads of its functions still run")
        threads.end_idle()
        time.sleep(_LOOK_S)

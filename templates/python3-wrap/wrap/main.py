"""Puts a wrap together: imports its functions, forks the zygote, serves.

The order matters: functions are imported before the zygote is forked, so that their memory is
shared, and it is forked before there is any thread.
"""

from __future__ import annotations

import faulthandler
import gc
import importlib
import os
import socket
import sys
from functools import partial
from pathlib import Path
from typing import NoReturn

from wrap import affinity, child, log, memory, serving, task
from wrap.canceller import Canceller
from wrap.declaration import Wrap
from wrap.exits import contain
from wrap.fork import Fork
from wrap.loader import Function, load
from wrap.messages import Job, Result
from wrap.pool import Pool
from wrap.remote import Gateway
from wrap.runtime import Mechanism, Runtime
from wrap.server import create_app
from wrap.settings import TRACE_KEY, Settings
from wrap.spawner import Spawner
from wrap.threads import ThreadPool
from wrap.transport import GRACE_S
from wrap.zygote import Zygote

_ZYGOTE = "--zygote"


def main(arguments: list[str], image: Path) -> NoReturn:
    """Serve the wrap in the folder `image`, or be its zygote (``--zygote DESCRIPTOR``)."""
    contain()  # before a function can keep the names as they were
    faulthandler.enable()  # the log then says where C code crashed
    log.install()
    memory.keep_apart()
    try:
        settings = Settings.read(os.environ)
        os.environ.pop(TRACE_KEY, None)  # it is of no use to functions
        affinity.restrict(settings.cpus)
        with serving.OneProcess():
            wrap, functions = _load(image)
        gc.collect()
        memory.keep_freed(settings.memory_bytes, _lasting_processes(wrap, settings))
        gc.freeze()  # a collection would write to every object, and unshare its memory
        if arguments[:1] == [_ZYGOTE]:
            _be_zygote(wrap, functions, socket.socket(fileno=int(arguments[1])))
            sys.exit(0)
        listener = serving.listen(os.environ)
    except (ImportError, ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    _serve(settings, wrap, functions, listener, image)


def _serve(
    settings: Settings,
    wrap: Wrap,
    functions: dict[str, Function],
    listener: socket.socket,
    image: Path,
) -> NoReturn:
    def be_zygote(control: socket.socket) -> None:
        listener.close()
        _be_zygote(wrap, functions, control)

    spawner = Spawner(be_zygote, [sys.executable, str(image / "index.py"), _ZYGOTE])
    runtime = Runtime(
        wrap,
        functions,
        ThreadPool(),
        Canceller(),
        _mechanism(wrap, spawner, settings),
        Gateway(settings.gateway_url, settings.trace_key),
        settings.trace_key,
    )
    drain_s = wrap.timeout_s + GRACE_S
    serving.serve(create_app(runtime), listener, settings.threads, drain_s, spawner.close)


def _load(image: Path) -> tuple[Wrap, dict[str, Function]]:
    wrap = importlib.import_module("function.handler").WRAP
    return wrap, load(wrap, image / "function" / "functions")


def _be_zygote(wrap: Wrap, functions: dict[str, Function], control: socket.socket) -> None:
    Zygote(control, partial(_be_child, wrap, functions)).run()


def _be_child(wrap: Wrap, functions: dict[str, Function], channel: socket.socket) -> None:
    child.serve(channel, partial(_run_task, wrap, functions))


def _run_task(wrap: Wrap, functions: dict[str, Function], number: int, job: Job) -> Result:
    return task.run(number, job, wrap, functions)


def _lasting_processes(wrap: Wrap, settings: Settings) -> int:
    """The server, and the workers that a pool has at most."""
    return 1 + (wrap.slots * settings.pool_concurrency if wrap.mechanism == "pool" else 0)


def _mechanism(wrap: Wrap, spawner: Spawner, settings: Settings) -> Mechanism:
    if wrap.mechanism == "pool":
        return Pool(spawner, wrap.slots, settings.pool_concurrency, settings.pool_requests)
    return Fork(spawner)

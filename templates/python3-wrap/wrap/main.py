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
from collections.abc import Sequence
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
from wrap.server import PROBES, create_app
from wrap.settings import TRACE_KEY, Settings
from wrap.spawner import Spawner
from wrap.threads import ThreadPool
from wrap.transport import GRACE_S
from wrap.zygote import Zygote

_ZYGOTE = "--zygote"
#: A process may answer with no more than this share of what the wrap may take.
_SHARE = 4
#: So many threads, or two requests' if they are more, may go on past their limit.
_LOST = 64


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
        sockets = serving.listen(os.environ)
    except (ImportError, ValueError, OSError) as error:
        sys.exit(f"{type(error).__name__}: {error}")
    _serve(settings, wrap, functions, sockets, image)


def _serve(
    settings: Settings,
    wrap: Wrap,
    functions: dict[str, Function],
    sockets: Sequence[socket.socket],
    image: Path,
) -> NoReturn:
    def be_zygote(control: socket.socket) -> None:
        for each in sockets:
            each.close()
        _be_zygote(wrap, functions, control)

    command = [sys.executable, str(image / "index.py"), _ZYGOTE]
    spawner = Spawner(be_zygote, command, settings.memory_bytes // _SHARE)
    runtime = Runtime(
        wrap,
        functions,
        ThreadPool(max(_LOST, 2 * wrap.threads)),
        Canceller(),
        _mechanism(wrap, spawner, settings),
        Gateway(settings.gateway_url, settings.trace_key),
        settings.trace_key,
    )
    serving.serve(
        create_app(runtime),
        sockets,
        settings.threads,
        settings.memory_bytes,
        probes=PROBES,
        drain_s=wrap.timeout_s + GRACE_S,
        close=spawner.close,
        worn=runtime.threads.worn,
    )


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

"""The fork server: a single-threaded process with the components imported, which forks others.

It imports the modules of the server and of the forked processes. It also imports the program's main
module, which each process would otherwise run again. If `prepare` is called before the server's
imports, both import in parallel on two cores; so this module imports nothing of the project.
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing import forkserver

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["__main__", "chiron.services.preloaded"])


def prepare() -> None:
    """Start the fork server, if it does not run, before there is work. It ends with this process.

    It shares the terminal, but ^C and ^\\ are for this process: if interrupted in its imports, the
    fork server would print a traceback. Later it ignores these signals, as do its children.
    """
    numbers = signal.SIGINT, signal.SIGQUIT
    before = {each: signal.signal(each, signal.SIG_IGN) for each in numbers}  # inherited by it
    try:
        forkserver.ensure_running()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

"""The fork server: a single-threaded process with the components imported, which forks others.

It imports what the server itself imports, and what only the forked do; also the program's main
module, which each of them would otherwise run once more. Asked for before that begins, it does so
meanwhile, on another core; so this module imports nothing of the project.
"""

from __future__ import annotations

import multiprocessing
import signal
from multiprocessing import forkserver

context = multiprocessing.get_context("forkserver")
context.set_forkserver_preload(["__main__", "chiron.services.preloaded"])


def prepare() -> None:
    """Start it, if it does not run, before there is work for it. It ends with this process.

    It shares the terminal, and ^C and ^\\ there are for this process: interrupted in its imports,
    the fork server would print a traceback. Later it ignores these signals, as what it forks does.
    """
    numbers = signal.SIGINT, signal.SIGQUIT
    before = {each: signal.signal(each, signal.SIG_IGN) for each in numbers}  # which is inherited
    try:
        forkserver.ensure_running()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)

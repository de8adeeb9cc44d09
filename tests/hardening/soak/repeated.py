"""Does something again and again, in a thread, while a block runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def repeated(period_s: float, work: Callable[[], object]) -> Iterator[None]:
    """Do `work` every `period_s` seconds until the block ends."""
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(period_s):
            work()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()

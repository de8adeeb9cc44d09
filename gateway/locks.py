"""Locks between processes: flock, released by the kernel even when the holder is killed."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def exclusive(path: Path) -> Iterator[None]:
    """Hold the lock file `path` (created if need be), waiting for whoever holds it now.

    Other users cannot open it, and so not hold it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    with open(descriptor, "a") as file:  # noqa: PTH123  (a descriptor)
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


def share(folder: Path) -> int:
    """Take a shared lock on `folder`; returns the descriptor to close to give it back."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def unused(folder: Path) -> bool:
    """Whether nobody holds a shared lock on `folder`."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    finally:
        os.close(descriptor)
    return True

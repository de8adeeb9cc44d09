"""A file to which a task writes an output, while other tasks read it."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from collections.abc import Callable, Sequence
from typing import IO, TYPE_CHECKING, Any

from wrap.core.errors import TaskError
from wrap.pipes.frames import BUFFER, END, LENGTH
from wrap.pipes.outlets import Outlet, Outlets

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

#: The longest frame; longer data are sent in several frames.
_LONGEST = 1 << 30
#: How long a yielded piece may wait for more, in seconds.
_MOMENT_S = 0.001


class Writer(io.RawIOBase):
    """A file for an output of a task. Small pieces are sent together, large ones are not copied.

    Args:
        outlets: the connections to the readers of this output.
        among: the connections to the readers of all outputs of the task.
        kept: whether the whole output is needed too.
        written: called when the file has been closed, unless it was abandoned.
    """

    def __init__(
        self,
        outlets: Sequence[Outlet],
        among: Outlets,
        kept: bool,
        written: Callable[[], None] = lambda: None,
    ) -> None:
        super().__init__()
        self._outlets = outlets
        self._among = among
        self._kept: bytearray | None = bytearray() if kept else None
        self._written = written
        self._waiting = bytearray()
        self._abandoned = False
        self._lock = threading.RLock()
        #: When there were first bytes to send; None before that.
        self.begun: float | None = None

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        """Take all of `data`. Raises TaskError if a reader is gone."""
        view = memoryview(data).cast("B")
        with self._lock:
            if self.closed:
                raise ValueError("it has been closed")
            if self._kept is not None:
                self._kept += view
            if not self._outlets:
                if len(self.whole) >= BUFFER:
                    self._begin()
                return len(view)
            if len(self._waiting) + len(view) < BUFFER:
                self._waiting += view
            else:
                self._send(view)
        return len(view)

    def flush(self) -> None:
        with self._lock:
            if self._waiting:
                self._send(memoryview(b""))
            elif self.whole:
                self._begin()

    def close(self) -> None:
        """Send the bytes that wait, and the end of the stream."""
        with self._lock:
            if self.closed:
                return
            try:
                self.flush()
                if self._outlets:
                    self._among.send(self._outlets, [LENGTH.pack(END)])
            finally:
                super().close()
            if not self._abandoned:
                self._written()

    def abandon(self) -> None:
        """Send nothing more, not even an end."""
        self._outlets, self._abandoned = (), True

    def __exit__(self, *raised: Any) -> None:
        if raised[0] is not None:
            self.abandon()
        self.close()

    @property
    def whole(self) -> bytearray:
        """All bytes written, if they are kept."""
        return self._kept or bytearray()

    def _begin(self) -> None:
        if self.begun is None:
            self.begun = time.monotonic()

    def _send(self, view: memoryview) -> None:
        self._begin()
        waiting, self._waiting = self._waiting, bytearray()
        for start in range(0, len(view) or 1, _LONGEST):
            piece = view[start : start + _LONGEST]
            length = LENGTH.pack(len(waiting) + len(piece))
            self._among.send(self._outlets, [length, memoryview(waiting), piece])
            waiting = bytearray()


class Flusher:
    """Flushes a file at most a moment after each write, so that small pieces are sent together."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._flushed = 0.0
        self._wrote = threading.Event()
        self._ended = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Flusher:
        return self

    def __exit__(self, *_: object) -> None:
        self._ended = True
        self._wrote.set()

    def wrote(self) -> None:
        """Flush what was written: now, or together with other writes within a moment."""
        now = time.monotonic()
        if now > self._flushed + _MOMENT_S:
            self._flushed = now
            self._file.flush()
            return
        self._wrote.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="flusher", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        with contextlib.suppress(TaskError, ValueError):  # the writer gets it too, or has closed
            while self._wrote.wait() and not self._ended:
                self._wrote.clear()
                time.sleep(_MOMENT_S)
                self._flushed = time.monotonic()
                self._file.flush()
